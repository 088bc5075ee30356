"""docker-compose.yml and the image, read and held against the code. Neither is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mnemic.settings import MemorySettings

OURS = {"init", "upgrade", "worker", "beat", "server"}
ONCE = {"init", "upgrade"}
SECRET = re.compile(r"\$\{MNEMIC_[A-Z]+_PASSWORD:\?[^}]+\}")


@pytest.fixture(scope="module")
def compose(root: Path) -> dict[str, Any]:
    text = (root / "docker-compose.yml").read_text(encoding="utf-8")
    read: dict[str, Any] = yaml.safe_load(text)
    return read


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose["services"]
    return found


@pytest.fixture(scope="module")
def dockerfile(root: Path) -> str:
    return (root / "docker" / "Dockerfile").read_text(encoding="utf-8")


def commands(services: dict[str, dict[str, Any]]) -> Iterator[list[str]]:
    """The arguments that `mnemic` is given: by services, and by their health checks."""
    for name in sorted(OURS):
        yield services[name]["command"]
        kind, *words = services[name].get("healthcheck", {}).get("test", ["none"])
        if kind == "CMD" and words[0] == "mnemic":
            yield words[1:]


def test_it_says_that_no_test_runs_it(root: Path, dockerfile: str) -> None:
    text = (root / "docker-compose.yml").read_text(encoding="utf-8")

    assert "no test runs it" in " ".join(re.findall(r"# ?(.*)", text))
    assert "none builds it" in dockerfile


def test_the_parts_are_there(services: dict[str, dict[str, Any]]) -> None:
    images = {name: service["image"] for name, service in services.items()}

    assert images.pop("postgres") == "pgvector/pgvector:pg18"
    assert images.pop("valkey") == "valkey/valkey:9"
    assert images.keys() == OURS
    assert len(set(images.values())) == 1


def test_every_command_is_one_of_the_command_line(
    services: dict[str, dict[str, Any]], parsed: Callable[[list[str]], dict[str, Any]]
) -> None:
    given = list(commands(services))

    names = [parsed(arguments)["command"] for arguments in given]

    assert names == [
        "mnemic beat",
        "mnemic db init",
        "mnemic mcp",
        "mnemic db upgrade",
        "mnemic worker",
        "mnemic doctor",
    ]


def test_a_command_that_does_not_exist_would_be_seen(
    parsed: Callable[[list[str]], dict[str, Any]],
) -> None:
    with pytest.raises(Exception, match="No such command 'serve'"):
        parsed(["serve"])
    with pytest.raises(Exception, match="No such option: --hidden"):
        parsed(["worker", "--hidden"])


def test_the_data_of_postgres_18_lie_where_its_image_wants_them(
    compose: dict[str, Any], services: dict[str, dict[str, Any]]
) -> None:
    assert services["postgres"]["volumes"] == ["postgres-data:/var/lib/postgresql"]
    assert services["valkey"]["volumes"] == ["valkey-data:/data"]
    assert compose["volumes"].keys() == {"postgres-data", "valkey-data"}


def test_valkey_keeps_what_it_acknowledged(services: dict[str, dict[str, Any]]) -> None:
    command = services["valkey"]["command"][-1]

    assert "--appendonly yes --appendfsync everysec" in command
    assert "--maxmemory-policy noeviction" in command
    assert "--requirepass" in command


def test_nothing_runs_as_root_or_with_more_rights_than_it_needs(
    services: dict[str, dict[str, Any]], dockerfile: str
) -> None:
    for service in services.values():
        assert service["user"] in {"postgres", "valkey", "10001:10001"}
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "privileged" not in service
    assert re.findall(r"^USER (.*)$", dockerfile, re.MULTILINE)[-1] == "10001:10001"


def test_no_port_is_published(services: dict[str, dict[str, Any]]) -> None:
    assert [name for name, service in services.items() if "ports" in service] == []


def test_every_secret_comes_from_the_environment_and_must_be_set(
    services: dict[str, dict[str, Any]],
) -> None:
    values = [
        value
        for service in services.values()
        for name, value in service.get("environment", {}).items()
        if name.endswith(("_URL", "_PASSWORD"))
    ]

    assert len(values) >= 10
    assert [value for value in values if not SECRET.search(value)] == []


def test_settings_have_the_names_that_the_program_reads(
    services: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {name for one in OURS for name in services[one]["environment"]} - {"MEM_ADMIN_URL"}
    for name in named:
        monkeypatch.setenv(name, SECRET.sub("secret", services["init"]["environment"][name]))

    read = MemorySettings()

    assert named == {"MEM_DATABASE_URL", "MEM_DATABASE_OWNER_URL", "MEM_REDIS_URL"}
    assert read.database_url is not None
    assert read.database_url.get_secret_value() == (
        "postgresql://mnemic_app:secret@postgres:5432/mnemic"
    )


def test_only_the_set_up_knows_the_passwords_of_owner_and_administrator(
    services: dict[str, dict[str, Any]],
) -> None:
    knowing = {
        name: {key for key in services[name]["environment"] if "OWNER" in key or "ADMIN" in key}
        for name in OURS
    }

    assert {name for name, keys in knowing.items() if "MEM_ADMIN_URL" in keys} == {"init"}
    assert {name for name, keys in knowing.items() if keys} == ONCE


def test_each_waits_for_what_it_needs(services: dict[str, dict[str, Any]]) -> None:
    waits = {
        name: {other: how["condition"] for other, how in services[name]["depends_on"].items()}
        for name in OURS
    }
    ready = {"upgrade": "service_completed_successfully", "valkey": "service_healthy"}

    assert waits == {
        "init": {"postgres": "service_healthy"},
        "upgrade": {"init": "service_completed_successfully"},
        "worker": ready,
        "beat": ready,
        "server": ready,
    }


def test_what_stays_up_says_whether_it_is_well(services: dict[str, dict[str, Any]]) -> None:
    lasting = services.keys() - ONCE - {"server"}

    checks = {name: services[name]["healthcheck"] for name in lasting}

    assert checks.pop("beat") == {"disable": True}
    assert all(check["test"][0].startswith("CMD") for check in checks.values())
    assert checks.keys() == {"postgres", "valkey", "worker"}


def test_the_image_copies_what_exists_and_what_its_context_lets_in(
    root: Path, dockerfile: str
) -> None:
    ignore = (root / "docker" / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    let_in = {line.removeprefix("!") for line in ignore if line.startswith("!")}

    lines = re.findall(r"^COPY (?!--from)(.*)$", dockerfile, re.MULTILINE)

    copied = {source for line in lines for source in line.split()[:-1]}
    assert copied == let_in
    assert [name for name in copied if not (root / name).exists()] == []


def test_the_image_tells_this_release(
    services: dict[str, dict[str, Any]], project: dict[str, Any]
) -> None:
    assert services["worker"]["image"] == f"mnemic:{project['project']['version']}"


def test_the_image_serves_with_a_part_of_the_lock(root: Path) -> None:
    pins = [
        set(re.findall(r"^[\w.-]+==[\w.]+", path.read_text(encoding="utf-8"), re.MULTILINE))
        for path in (root / "docker" / "requirements.lock", root / "requirements.lock")
    ]

    assert pins[0] < pins[1]
    assert not any(pin.startswith(("pytest==", "mypy==")) for pin in pins[0])
