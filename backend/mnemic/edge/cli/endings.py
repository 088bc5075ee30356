"""How a command ends: its exit code, and one clear message instead of a traceback."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import typer

from mnemic.edge.cli.writing import printable, write_json, write_side
from mnemic.errors import (
    ConfigurationError,
    Conflict,
    Forbidden,
    InvalidInput,
    MnemicError,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)

__all__ = ["EXIT_CODES", "FAILED", "INVALID", "Run", "exit_code_of", "run_app"]

FAILED = 1
INVALID = 2
INTERRUPTED = 130
READER_GONE = 141
OUTPUT_LOST = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

EXIT_CODES: dict[type[MnemicError], int] = {
    InvalidInput: INVALID,
    NotFound: 3,
    Conflict: 3,
    Forbidden: 3,
    ConfigurationError: 4,
    Unavailable: 5,
}


@dataclass(slots=True)
class Run:
    """What a run was asked for before its command was known."""

    as_json: bool
    debug: bool = False


def exit_code_of(fault: MnemicError) -> int:
    """The exit code for an error: that of the closest class it belongs to."""
    kinds = (EXIT_CODES[kind] for kind in type(fault).__mro__ if kind in EXIT_CODES)
    return next(kinds, FAILED)


def run_app(app: typer.Typer, arguments: Sequence[str]) -> int:
    """The command has run; its exit code. Nothing is raised, whatever happened."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    run = Run(as_json=_wants_json(arguments))
    try:
        code = _invoke(app, arguments, run)
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_gone()
    except OSError as fault:  # the disk behind standard output is full, say
        _discard_output()
        write_side(f"Error: the result cannot be written: {fault.strerror}")
        return FAILED
    return code


def _invoke(app: typer.Typer, arguments: Sequence[str], run: Run) -> int:
    try:
        ended = app(args=list(arguments), prog_name="mnemic", standalone_mode=False, obj=run)
    except OSError as fault:
        if fault.errno in OUTPUT_LOST:
            raise
        return _report_any(fault, run)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):
            raise leaving.__context__ from None
        return leaving.code if isinstance(leaving.code, int) else FAILED
    except Exception as fault:  # noqa: BLE001 - the last resort: no traceback reaches a person
        return _report_any(fault, run)
    return ended if isinstance(ended, int) else 0


def _report_any(fault: Exception, run: Run) -> int:
    if isinstance(fault, MnemicError):
        return _report(fault, run)
    if isinstance(fault, typer.TyperException):
        return _report_usage(fault, run)
    refused = _refused_settings(fault)
    return _report(refused, run) if refused else _report_unexpected(fault, run)


def _report(fault: MnemicError, run: Run) -> int:
    told: dict[str, Any] = {"code": fault.code, "message": str(fault)}
    for key in ("field", "problems"):
        if key in fault.context:
            told[key] = fault.context[key]
    hint = "\nTry again; `mnemic doctor` tells which server is away." if _is_away(fault) else ""
    _tell(told, f"{fault}{hint}", run)
    _trace(fault, run)
    return exit_code_of(fault)


def _is_away(fault: MnemicError) -> bool:
    return isinstance(fault, Unavailable) and not isinstance(fault, OutcomeUnknown)


def _report_usage(fault: typer.TyperException, run: Run) -> int:
    message = " ".join(fault.format_message().split())
    context = getattr(fault, "ctx", None)
    command = context.command_path if context is not None else "mnemic"
    if message:  # empty when the help was printed for want of arguments
        hint = f"\nFor the options: {command} --help"
        _tell({"code": "usage", "message": message}, message + hint, run)
    return fault.exit_code


def _report_unexpected(fault: Exception, run: Run) -> int:
    said = f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__
    hint = "" if run.debug else "\nTo see where it happened, run it again with MEM_DEBUG=1"
    _tell({"code": MnemicError.code, "message": said}, f"unexpected {said}{hint}", run)
    _trace(fault, run)
    return FAILED


def _refused_settings(fault: Exception) -> ConfigurationError | None:
    """What is wrong with the settings, if a command has read them by itself."""
    if type(fault).__name__ != "ValidationError":
        return None
    from pydantic import ValidationError

    from mnemic.settings_reading import explained

    if not isinstance(fault, ValidationError) or fault.title != "MemorySettings":
        return None
    return explained(fault)


def _tell(document: dict[str, Any], message: str, run: Run) -> None:
    if run.as_json:
        write_json({"error": document})
    else:
        write_side(f"Error: {message}")


def _trace(fault: Exception, run: Run) -> None:
    if run.debug:
        sys.stderr.write(printable("".join(traceback.format_exception(fault))))


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` is among the options, asked before anything is parsed."""
    given = list(arguments)
    options = given[: given.index("--")] if "--" in given else given
    return "--json" in options


def _reader_gone() -> int:
    """Whoever read our output has gone, as with `| head`: end as quietly as other programs do."""
    _discard_output()
    return READER_GONE


def _discard_output() -> None:
    """What is still buffered for standard output is dropped when the interpreter ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        sys.stdout = sys.__stdout__
