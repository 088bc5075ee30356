"""After a fork the child has connections of its own, and the parent keeps his."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from looping import LOOPS, told

BEGIN = """
import asyncio, gc, json, multiprocessing, os, sys, warnings
from looping import LOOPS, told, a_manager, job, logins
from mnemic.settings import MemorySettings

# Python warns of forks while threads run; that is what is tried here.
warnings.filterwarnings("ignore", message=".*use of fork", category=DeprecationWarning)
memory = a_manager(MemorySettings())

def on_a_loop(coroutine):
    with asyncio.Runner(loop_factory=LOOPS[KIND]) as runner:
        return runner.run(coroutine)

async def both(who):
    return {"answer": await job(memory, who), "logins": sorted(await logins(memory)),
            "sockets": sockets()}

def sockets():
    links = (os.path.join("/proc/self/fd", one) for one in os.listdir("/proc/self/fd"))
    return sorted(os.readlink(one) for one in links
                  if os.path.islink(one) and os.readlink(one).startswith("socket:"))

def tell(child, told):
    os.write(child, json.dumps(told).encode())

def in_a_fork(work, leave=os._exit):
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            tell(there, work())
            status = 0
        finally:
            leave(status)
    os.close(there)
    with os.fdopen(here) as pipe:
        told = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return json.loads(told)
"""
BETWEEN = """
on_a_loop(memory.start())
before = on_a_loop(both("parent"))
child = in_a_fork(lambda: on_a_loop(both("child")))
after = on_a_loop(both("parent"))
print(json.dumps([before, child, after]))
"""
INSIDE = """
async def main():
    await memory.start()
    before = await both("parent")
    child = in_a_fork(lambda: on_a_loop(both("child")))
    after = await both("parent")
    print(json.dumps([before, child, after]))
    await memory.close()
on_a_loop(main())
"""
LEFT = """
async def main():
    await memory.start()
    before = await both("parent")
    child = in_a_fork(lambda: on_a_loop(both("child")), leave=collect_and_leave)
    after = await both("parent")
    print(json.dumps([before, child, after]))
    await memory.close()

def collect_and_leave(status):
    global memory
    memory._wiring = memory._opened = None
    del memory
    gc.collect()
    os._exit(status)

on_a_loop(main())
"""
POOL = """
def in_the_child(who):
    return on_a_loop(both(who))

async def main():
    await memory.start()
    before = await both("parent")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        child = pool.apply(in_the_child, ("child",))
        pool.close()
        pool.join()
    after = await both("parent")
    print(json.dumps([before, child, after]))
    await memory.close()
on_a_loop(main())
"""


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    "fork", [BETWEEN, INSIDE, LEFT, POOL], ids=["between", "inside", "collected", "pool"]
)
def test_a_manager_opened_before_a_fork_serves_both_with_sockets_of_their_own(
    loop: str, fork: str, run: Callable[[str], str]
) -> None:
    before, child, after = json.loads(run(f"KIND = {loop!r}\n{BEGIN}\n{fork}"))

    for found, who in ((before, "parent"), (child, "child"), (after, "parent")):
        assert found["answer"] == told(who)
    assert not {*child["logins"]} & {*before["logins"], *after["logins"]}
    assert len(child["logins"]) == 2
    if fork != BETWEEN:  # the parent's loop lived on, and so did its connections
        assert after["logins"] == before["logins"]
        assert {*before["sockets"]} <= {*after["sockets"]}
