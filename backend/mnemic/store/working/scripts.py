"""The scripts of `lua/`, each with what they share put before it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha1
from importlib import resources

__all__ = [
    "APPEND",
    "BEGIN",
    "CLEAR",
    "DELETE",
    "FINISH",
    "MERGE",
    "NOTES",
    "RESERVE",
    "SET",
    "SETTLE",
    "SNAPSHOT",
    "Script",
]


@dataclass(frozen=True, slots=True)
class Script:
    """A script and the digest under which a server remembers it."""

    text: str
    digest: str


def _script(name: str, flags: str = "") -> Script:
    """`flags` of the first line: without `allow-oom` a full server refuses it before it begins."""
    folder = resources.files("mnemic.store.working") / "lua"
    parts = [(folder / f"{part}.lua").read_text("utf-8") for part in ("entry", name)]
    text = "\n".join([f"#!lua flags={flags}" if flags else "#!lua", *parts])
    # The server's name for a script, not a safeguard.
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


APPEND = _script("append")
BEGIN = _script("begin", "allow-oom")
CLEAR = _script("clear", "allow-oom")
DELETE = _script("delete", "allow-oom")
FINISH = _script("finish", "allow-oom")
MERGE = _script("merge", "allow-oom")  # what was acknowledged comes in
NOTES = _script("notes", "no-writes")
RESERVE = _script("reserve")
SET = _script("set")
SETTLE = _script("settle", "allow-oom")
SNAPSHOT = _script("snapshot", "no-writes")
