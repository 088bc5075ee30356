"""`pytest -p planted_plugin --plant NAME`: the run has the defect of that name."""

from __future__ import annotations

import asyncio
import os
from threading import Thread

import asyncpg
import pytest
from planted_defects import DEFECTS, SQL_VARIABLE

from mnemic.store import upgrade


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--plant", choices=sorted(DEFECTS), required=True)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before any conftest has taken what is altered."""
    DEFECTS[early_config.known_args_namespace.plant].plant()
    if statement := os.environ.pop(SQL_VARIABLE, ""):
        _plant_in_schema(statement)


def _plant_in_schema(statement: str) -> None:
    """Whatever is migrated from now on has it."""
    migrate = upgrade.upgrade

    async def execute(url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(statement)
        await connection.close()

    def planted(url: str, *given: object, **named: object) -> object:
        done = migrate(url, *given, **named)
        # The caller's loop runs in this thread.
        thread = Thread(target=lambda: asyncio.run(execute(url)))
        thread.start()
        thread.join()
        return done

    upgrade.upgrade = planted
