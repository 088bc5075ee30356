"""Transcript files as the command line is given them: read twice, first to know what is in them."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from mnemic.errors import InvalidInput
from mnemic.model.transcript import (
    BadLine,
    Bounds,
    Entry,
    Format,
    SessionInfo,
    StatedFact,
    Utterance,
    read,
)

__all__ = ["Survey", "TranscriptFile"]

STANDARD_INPUT = "-"
BAD_LINES_MAX = 1_000
_IN_MEMORY_BYTES_MAX = 8 * 1_048_576


@dataclass(slots=True)
class Survey:
    """What a file holds, told by reading it once.

    `bad_lines` are the first `BAD_LINES_MAX`; `bad_line_count` counts them all.
    """

    turns: int = 0
    facts: int = 0
    sessions: set[tuple[str | None, str]] = field(default_factory=set)
    bad_lines: list[BadLine] = field(default_factory=list)
    bad_line_count: int = 0

    @property
    def is_readable(self) -> bool:
        """Whether there is anything to ingest."""
        return bool(self.turns or self.facts)

    @property
    def steps(self) -> int:
        """How many times `Progress` will count one."""
        return self.turns + self.facts + len(self.sessions)


class TranscriptFile:
    """A file, or standard input (`-`), whose entries can be read any number of times.

    Raises `InvalidInput` where the file cannot be opened or read.
    """

    def __init__(
        self, given: str, *, form: Format | None, name: str | None, bounds: Bounds
    ) -> None:
        self.label = "standard input" if given == STANDARD_INPUT else given
        self._form = form
        self._bounds = bounds
        with self._refusals():
            if given == STANDARD_INPUT:
                self._stream = _kept(sys.stdin.buffer)
            else:
                self._stream = Path(given).open("rb")  # noqa: SIM115 - closed by `close`
        self._name = name or (None if given == STANDARD_INPUT else Path(given).stem)

    def close(self) -> None:
        """Nothing of the file is held any more."""
        self._stream.close()

    def entries(self) -> Iterator[Entry]:
        """Every entry, in order."""
        with self._refusals():
            self._stream.seek(0)
            yield from read(self._stream, format=self._form, name=self._name, bounds=self._bounds)

    def survey(self) -> Survey:
        """What is in the file."""
        found = Survey()
        for entry in self.entries():
            match entry:
                case Utterance():
                    found.turns += 1
                    found.sessions.add((entry.project, entry.session))
                case StatedFact():
                    found.facts += 1
                case BadLine():
                    found.bad_line_count += 1
                    if len(found.bad_lines) < BAD_LINES_MAX:
                        found.bad_lines.append(entry)
                case SessionInfo():
                    pass
        return found

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except IsADirectoryError:
            raise InvalidInput(f"{self.label} is a folder; name its files", field="files") from None
        except OSError as fault:
            raise InvalidInput(
                f"{self.label} cannot be read: {fault.strerror or fault}", field="files"
            ) from None
        except ValueError:  # a NUL in the name
            raise InvalidInput(f"{self.label!r} is not the name of a file", field="files") from None


def _kept(stream: IO[bytes]) -> IO[bytes]:
    """A stream that can be read again, in memory while it is small."""
    kept = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES_MAX)  # noqa: SIM115 - as above
    shutil.copyfileobj(stream, kept)
    kept.seek(0)
    return kept
