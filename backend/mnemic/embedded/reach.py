"""Run on its own by root: becomes a user for good, then tries to enter a folder.

Arguments: user id, group id, further groups (comma-separated), folder. Exit status 0 when the
folder can be entered, 3 when not. What stands in the way (modes, ACLs, mounts) is found by trying.
"""

from __future__ import annotations

import os

CANNOT_ENTER = 3


def main(uid: str, gid: str, groups: str, folder: str) -> int:
    """Exit status of the attempt."""
    os.setgroups([int(group) for group in groups.split(",") if group])
    os.setgid(int(gid))
    os.setuid(int(uid))
    try:
        os.chdir(folder)
    except OSError:
        return CANNOT_ENTER
    return 0
