"""What holds for every place of working memory; shipped so that a host can ask it of its own.

```python
@pytest.mark.parametrize("check", WORKING_CONTRACT, ids=lambda check: check.__name__)
async def test_the_contract_holds(check, places, clock):
    await check(WorkingSubject(places, clock))
```

`places` are opened with `contract_settings(…)` and `clock`, which is a `standing_clock()`. A check
that fails raises `AssertionError`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mnemic.testing.working_contract import expiring, holding, limiting, restoring
from mnemic.testing.working_contract.subject import (
    WorkingSubject,
    contract_settings,
    standing_clock,
)

__all__ = ["WORKING_CONTRACT", "WorkingSubject", "contract_settings", "standing_clock"]

WORKING_CONTRACT: tuple[Callable[[WorkingSubject], Awaitable[None]], ...] = (
    holding.a_fresh_scope_is_empty,
    holding.values_come_back_equal_and_of_their_types,
    holding.what_json_cannot_hold_is_refused,
    holding.any_text_is_a_key,
    holding.keys_that_cannot_be_held_are_refused,
    holding.patterns_match_keys,
    holding.no_pattern_runs_away,
    holding.a_scope_sees_nothing_of_another,
    holding.a_durable_key_is_as_any_other,
    expiring.a_key_expires_when_it_was_told_to,
    expiring.an_update_keeps_the_moment_that_was_given,
    expiring.the_default_time_to_live_is_put_off_by_writes,
    expiring.a_key_that_has_expired_begins_anew,
    expiring.times_to_live_that_make_no_sense_are_refused,
    limiting.keys_beyond_the_limit_are_refused,
    limiting.bytes_beyond_the_limit_are_refused,
    limiting.writers_at_once_do_not_pass_the_limits,
    limiting.writers_at_once_all_count,
    limiting.the_task_state_is_kept_whole,
    limiting.the_scratchpad_keeps_its_order,
    restoring.clear_empties_the_scope,
    restoring.a_checkpoint_is_complete_and_a_restore_can_be_undone,
    restoring.a_restore_does_not_revive_what_was_told_to_expire,
    restoring.checkpoints_belong_to_their_scope,
    restoring.nobody_sees_half_of_a_restore,
)
