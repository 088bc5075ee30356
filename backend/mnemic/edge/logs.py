"""Where the log of a command goes: to standard error, whatever standard output is for."""

from __future__ import annotations

import logging
import sys
from enum import StrEnum

__all__ = ["LogLevel", "log_to_stderr"]

CHATTY = ("alembic", "asyncio")


class LogLevel(StrEnum):
    """What is worth a line."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def log_to_stderr(level: LogLevel) -> None:
    """Every log line of this process goes to standard error: JSON, or text on a terminal.

    Lines of structlog and of the standard library look the same; a library that sets up logging
    afterwards finds it done.
    """
    import structlog  # noqa: PLC0415 - takes longer than all else that `mnemic --help` loads

    threshold = logging.getLevelNamesMapping()[level.name]
    caller: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    rendered: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer()]
        if sys.stderr.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=caller,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
        )
    )
    logging.basicConfig(level=threshold, handlers=[handler], force=True)
    for name in CHATTY:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))
    structlog.configure(
        processors=[*caller, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
