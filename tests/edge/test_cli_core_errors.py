"""What the command line says of input that cannot be held is what the core says."""

from __future__ import annotations

from typing import Any

import pytest

from mnemic import InvalidInput
from mnemic.model.normalise import clean_text


@pytest.mark.parametrize("hostile", ["a\x00b", "\u200b\u3000", "\u3164"])
def test_the_core_error_arrives_at_the_command_line(mnemic: Any, hostile: str) -> None:
    with pytest.raises(InvalidInput) as core:
        clean_text(hostile, field="content", chars_max=100_000)

    told = mnemic("remember", "-", stdin=hostile)
    control = mnemic("remember", "-", stdin="Deploys are frozen on Fridays")

    assert (told.code, told.out) == (2, "")
    assert str(core.value) in told.err
    assert control.code == 0


def test_the_command_line_says_what_was_kept_in_another_form(mnemic: Any) -> None:
    told = mnemic("remember", "Deploys are frozen on Fridays", "--tag", "ops", "--tag", "ops")

    assert told.code == 0
    assert "  tags is kept as 'ops'" in told.out.splitlines()
