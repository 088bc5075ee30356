"""How a machine is run: in rounds, each by a seed that is printed and gives the same run again."""

from __future__ import annotations

import structlog
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from proof.machine import Stage, machine_on

__all__ = ["play"]

log = structlog.get_logger("isolation")
STEPS = 250
RUNS_A_ROUND = 2
EVERY_PHASE = (Phase.generate, Phase.shrink)


def play(
    stage: Stage, *, operations: int, first_seed: int, phases: tuple[Phase, ...] = EVERY_PHASE
) -> None:
    """At least that many calls are made, and no answer holds what is another's.

    Raises `Leak`. A failing round is shrunk to the fewest calls that fail.
    """
    number = first_seed
    while stage.tally.operations < operations:
        log.info("round", walls=stage.walls.value, seed=number, after=stage.tally.operations)
        run_state_machine_as_test(
            seed(number)(machine_on(stage)),
            settings=settings(
                max_examples=RUNS_A_ROUND,
                stateful_step_count=STEPS,
                database=None,
                print_blob=True,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
                phases=phases,
            ),
        )
        number += 1
