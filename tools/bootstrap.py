"""Makes `.venv`: the packages of requirements.lock, and this project beside them, editable.

`tools/setup` starts it with a Python of at least 3.11; it needs the standard library only.

    bootstrap.py check          exit status 0 when .venv is as it should be, 1 when not
    bootstrap.py make [PYTHON]  makes or repairs it, with PYTHON if one is named
    bootstrap.py clean          removes what make has made in this folder, and nothing else

A `.venv` is as it should be when its stamp says so. The stamp is written last and taken away
first, so that a set-up that was killed is seen and begun anew. It holds the digests of the two
files that decide what is inside, and the path, since a virtual environment cannot be moved.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
MARK = VENV / ".made-by-mnemic-setup"
STAMP = VENV / ".mnemic-stamp.json"
LOG = VENV / "setup.log"
SCRATCH = VENV / "tmp"
LOCK = ROOT / ".venv.lock"
REQUIREMENTS = ROOT / "requirements.lock"
PROJECT = ROOT / "pyproject.toml"

PIP_OF_OTHERS_MIN = (22, 3)  # the first that installs into another interpreter (`--python`)
FREE_BYTES_MIN = 900 * 2**20
LOG_TAIL_LINES = 15
POLL_SECONDS = 0.2
_OWN_VERSION = ".".join(map(str, sys.version_info[:2]))
_QUIETLY = ("--no-deps", "--no-input", "--disable-pip-version-check")

# Settings that would make pip install somewhere else, or something else.
_PIP_ASTRAY = (
    "PIP_CONSTRAINT",
    "PIP_DRY_RUN",
    "PIP_NO_BINARY",
    "PIP_ONLY_BINARY",
    "PIP_PREFIX",
    "PIP_PYTHON",
    "PIP_REPORT",
    "PIP_REQUIREMENT",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_ROOT",
    "PIP_TARGET",
    "PIP_USER",
)
# What `clean` removes: products of the tools that the Makefile calls, all below this folder.
_PRODUCTS = (
    ".coverage",
    ".coverage.*",
    ".demo",
    ".graph",
    ".hypothesis",
    ".import_linter_cache",
    ".mutate",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "build",
    "dist",
    "htmlcov",
)
_SOURCES = ("backend", "benchmarks", "migrations", "tests", "tools")


class SetupError(Exception):
    """The set-up cannot go on; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What decides the content of a virtual environment."""

    path: str
    python: str
    requirements: str
    project: str


def wanted(python: str) -> Stamp:
    """The stamp of a `.venv` of Python version `python` that is as it should be."""
    return Stamp(str(VENV), python, _digest(REQUIREMENTS), _digest(PROJECT))


def found() -> Stamp | None:
    """The stamp that `.venv` has, or None when it has none that can be read."""
    try:
        return Stamp(**json.loads(STAMP.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def check() -> bool:
    """Whether `.venv`, whose interpreter this is, is as it should be."""
    return found() == wanted(_OWN_VERSION)


def make(python: str | None = None) -> None:
    """`.venv` is as it should be, whatever was there; at once when it was so already.

    With `python`, a `.venv` made with another interpreter is made anew. Raises SetupError.
    """
    with _alone() as lock:
        version, previous = _version(PYTHON), found()
        if python is not None and not _made_with(Path(python)):
            version = None
        if version is None or (
            previous and (previous.path, previous.python) != (str(VENV), version)
        ):
            previous = None  # it was moved, or its interpreter is not the one it was made with
        if version is not None and previous == wanted(version):
            return
        STAMP.unlink(missing_ok=True)
        if previous is None or previous.requirements != _digest(REQUIREMENTS):
            _make_environment(lock)
            _install_packages(lock)
        _install_project(lock)
        _remove(SCRATCH)
        _write_stamp(wanted(_version(PYTHON) or _OWN_VERSION))
    _say("ready: .venv")


def clean() -> None:
    """What make has made in this folder is gone; a `.venv` that somebody else made stays."""
    with _alone():
        if MARK.exists() and not VENV.is_symlink():
            _empty_environment()
            MARK.unlink()
            VENV.rmdir()
        elif VENV.exists():
            _say("kept: .venv, which was not made by make")
        products = [path for name in _PRODUCTS for path in ROOT.glob(name)]
        caches = [path for name in _SOURCES for path in (ROOT / name).rglob("__pycache__")]
        for path in (*products, *caches):
            _remove(path)
        LOCK.unlink()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone() -> Iterator[int]:
    """Yields the lock's descriptor: no other set-up of this folder runs meanwhile.

    Children inherit it: after a kill -9, the next set-up waits for the pip that was left behind.
    """
    while True:
        try:
            lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise SetupError(
                f"{ROOT} cannot be written ({error.strerror}): clone it into a folder of your own"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another set-up of this folder is at work; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if LOCK.exists() and LOCK.stat().st_ino == os.fstat(lock).st_ino:
            break
        os.close(lock)  # `clean` took the name away while we waited
    try:
        yield lock
    finally:
        os.close(lock)


def _version(python: Path) -> str | None:
    """The version ("3.11") of an interpreter, or None when it does not run."""
    try:
        ran = subprocess.run(
            [python, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            check=True,
            capture_output=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return ran.stdout.strip()


def _made_with(python: Path) -> bool:
    try:
        lines = (VENV / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    values = dict(line.split(" = ", 1) for line in lines if " = " in line)
    return (values.get("home"), values.get("version")) == (
        str(python.parent),
        platform.python_version(),
    )


def _make_environment(lock: int) -> None:
    if VENV.is_symlink():
        raise SetupError(f"{VENV} is a symbolic link; remove it, and make will make its own")
    if VENV.exists() and not MARK.exists() and any(VENV.iterdir()):
        # Somebody made it by hand, for this project: it is filled up, not thrown away.
        if not _has_pip():
            raise SetupError(f"{VENV} was not made by make and has no working pip; move it away")
        _say("using the .venv that is here already")
        return
    _say(f"making .venv with Python {platform.python_version()} ({sys.executable})")
    try:
        if VENV.exists():
            _empty_environment()
        VENV.mkdir(exist_ok=True)
        MARK.touch()
        free = shutil.disk_usage(VENV).free
    except OSError as error:
        raise SetupError(
            f"{VENV} cannot be made anew ({error.strerror}: {error.filename}); remove it as the "
            "user that made it"
        ) from error
    if free < FREE_BYTES_MIN:
        raise SetupError(
            f"{free >> 20} MiB are free for {VENV}, {FREE_BYTES_MIN >> 20} are needed; make room"
        )
    _run([sys.executable, "-I", "-m", "venv", "--without-pip", str(VENV)], lock)


def _empty_environment() -> None:
    """Nothing is left but the mark, which says that what is there is ours, even after a kill."""
    for path in VENV.iterdir():
        if path != MARK:
            _remove(path)


def _pip(lock: int) -> list[str]:
    """The command that installs into `.venv`; pip is put there where the system lets us.

    Debian and Ubuntu ship `ensurepip` in a package of its own, which a bare machine lacks.
    """
    own = [str(PYTHON), "-I", "-m", "pip"]
    if _has_pip() or _ran([str(PYTHON), "-I", "-m", "ensurepip"], lock):
        return own
    if _pip_version() >= PIP_OF_OTHERS_MIN:
        return [sys.executable, "-m", "pip", "--python", str(PYTHON)]
    for virtualenv in ([sys.executable, "-m", "virtualenv"], ["virtualenv"]):
        if _ran([*virtualenv, "--quiet", "--python", sys.executable, str(VENV)], lock):
            return own
    raise SetupError(
        f"Python {_OWN_VERSION} ({sys.executable}) comes without pip and ensurepip here. Install "
        f"them (Debian, Ubuntu: apt-get install python{_OWN_VERSION}-venv), or name another "
        "interpreter: make PYTHON=/path/to/python3.12 …"
    )


def _ran(command: list[str], lock: int) -> bool:
    """Whether `command` could be run and succeeded."""
    try:
        _run(command, lock)
    except (SetupError, OSError):
        return False
    return True


def _has_pip() -> bool:
    command = [str(PYTHON), "-I", "-c", "import pip"]
    try:
        return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def _pip_version() -> tuple[int, ...]:
    ran = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], check=False, capture_output=True, text=True
    )
    seen = re.match(r"pip (\d+)\.(\d+)", ran.stdout)
    return tuple(map(int, seen.groups())) if seen else ()


def _install_packages(lock: int) -> None:
    _say("installing the packages of requirements.lock, each checked by its digest")
    command = [*_pip(lock), "install", *_QUIETLY, "--require-hashes", "--only-binary=:all:"]
    _run(
        [*command, "-r", str(REQUIREMENTS)],
        lock,
        remedy="The packages come from the index that pip is set up to use. Without a network, "
        "name a folder that holds them (PIP_NO_INDEX=1 PIP_FIND_LINKS=/folder). There are builds "
        "for Linux with glibc 2.28 or newer and for macOS 11 or newer.",
    )


def _install_project(lock: int) -> None:
    _say("installing mnemic itself, editable")
    command = [str(PYTHON), "-I", "-m", "pip", "install", *_QUIETLY, "--no-build-isolation"]
    _run([*command, "--no-index", "--editable", str(ROOT)], lock)


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in _PIP_ASTRAY}
    SCRATCH.mkdir(exist_ok=True)
    kept["TMPDIR"] = str(SCRATCH)  # what a killed pip leaves behind goes with `.venv`
    if os.path.expanduser("~") == "~":  # noqa: PTH111 - pathlib raises where this says so
        kept |= {"HOME": str(VENV), "PIP_NO_CACHE_DIR": "1"}  # pip does not run without a home
    return kept


def _run(command: list[str], lock: int, *, remedy: str = "") -> None:
    """Runs to its end with its output in the log; raises SetupError with the log's tail."""
    with LOG.open("ab") as log:
        began = log.tell()
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=_environment(),
            cwd=ROOT,
            pass_fds=(lock,),
        )
        _watch(child, began)
    if child.returncode != 0:
        tail = LOG.read_bytes()[began:].decode(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        told = "\n".join(f"    {line}" for line in tail)
        raise SetupError(f"this failed: {' '.join(command)}\n{told}\n{remedy}".rstrip())


def _watch(child: subprocess.Popen[bytes], began: int) -> None:
    """Returns when `child` has ended; on a terminal, counts the packages meanwhile."""
    if not sys.stdout.isatty():
        child.wait()
        return
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(POLL_SECONDS)
            break
        with LOG.open("rb") as log:
            log.seek(began)
            count = sum(line.startswith(b"Collecting ") for line in log)
        if count:
            print(f"\rsetup: {count} packages fetched", end="", flush=True)
    print("\r\033[K", end="", flush=True)


def _write_stamp(stamp: Stamp) -> None:
    scratch = STAMP.with_suffix(".new")
    scratch.write_text(json.dumps(asdict(stamp)), encoding="utf-8")
    scratch.replace(STAMP)


def main(verb: str, *arguments: str) -> int:
    """The exit status of `verb`."""
    try:
        if verb == "check":
            return 0 if check() else 1
        if verb == "clean":
            clean()
        else:
            make(*arguments)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; the next make begins anew", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or ["make"]))
