"""Whatever bytes reach the command line, it keeps them or says what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from oracles.doors import drawn, readings

REFUSED, DONE = 2, 0


def test_the_command_line_keeps_it_or_says_what_is_wrong_with_it(
    mnemic: Any, pytestconfig: pytest.Config
) -> None:
    kept = []
    for number, raw in enumerate(drawn(pytestconfig.getoption("--seed"), count=6)):
        text = readings["an argument"](raw).replace("\x00", "")  # no argument can hold it
        if number % 2:
            ended = mnemic("remember", "--json", "--", text)
        else:
            ended = mnemic("remember", "--json", "-", stdin=raw)
        assert ended.code in {DONE, REFUSED}, (raw, ended)
        if ended.code == REFUSED:
            assert ended.document["error"]["message"], raw
            continue
        kept.append(ended.document["id"])
        asked = mnemic("recall", "--json", "--floor", "0", "--", text)
        assert kept[-1] in {hit["id"] for hit in asked.document["hits"]}, raw

    assert len(kept) > 5
    assert mnemic("forget", "--yes", *dict.fromkeys(kept)).code == DONE
