"""Which system user runs the servers."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from typing import Any

from mnemic.embedded.failure import RUN_AS
from mnemic.errors import ConfigurationError

DEFAULT_NAMES = ("mnemic", "nobody")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A system user; `switched` when it is not the user of this process."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    switched: bool

    def popen_arguments(self) -> dict[str, Any]:
        """What makes `subprocess` run a child as this user."""
        if not self.switched:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": list(self.groups)}


def server_account(run_as: str | None) -> Account:
    """The user that runs the servers: this one, or for root an unprivileged one. Makes none."""
    if os.geteuid() == 0:
        return _account_for_root(run_as)
    try:
        entry = pwd.getpwuid(os.geteuid())
    except KeyError:
        raise ConfigurationError(
            f"user id {os.geteuid()} has no name, and PostgreSQL's initdb wants one; add it to "
            "/etc/passwd or start as a user that has one",
            field=RUN_AS,
        ) from None
    if run_as is not None and run_as != entry.pw_name:
        raise ConfigurationError(
            f"{RUN_AS} is {run_as!r}, but only root can run the servers as another "
            f"user; unset it or start as {run_as!r}",
            field=RUN_AS,
        )
    return _account(entry, switched=False)


def _account_for_root(run_as: str | None) -> Account:
    for name in (run_as,) if run_as is not None else DEFAULT_NAMES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid == 0:
            raise ConfigurationError(
                f"{RUN_AS} is {name!r}, but PostgreSQL refuses to run as root; name "
                "an unprivileged system user",
                field=RUN_AS,
            )
        return _account(entry, switched=True)
    missing = repr(run_as) if run_as is not None else "'mnemic' or 'nobody'"
    raise ConfigurationError(
        f"PostgreSQL refuses to run as root, and there is no system user {missing}; make one "
        f"(useradd --system mnemic) and name it in {RUN_AS}, or start as an "
        "ordinary user",
        field=RUN_AS,
    )


def _account(entry: pwd.struct_passwd, *, switched: bool) -> Account:
    return Account(
        name=entry.pw_name,
        uid=entry.pw_uid,
        gid=entry.pw_gid,
        groups=tuple(os.getgrouplist(entry.pw_name, entry.pw_gid)),
        switched=switched,
    )
