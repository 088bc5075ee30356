"""`make chaos` runs this folder, `make test` does not: each defect is a pytest of its own."""

from __future__ import annotations

import pytest


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Without `--chaos` nothing here is a test."""
    return None if config.getoption("--chaos") or config.getoption("--deep") else True
