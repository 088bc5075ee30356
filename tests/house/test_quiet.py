"""Nothing is written below the home but the data folder: no caches, no ids, no reports of use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio
from mnemic.embed import open_embedder
from mnemic.settings import EmbeddingSettings

async def main():
    embedder = open_embedder(EmbeddingSettings())
    print(len((await embedder.embed(["What is written down?"]))[0]))
    await embedder.close()

asyncio.run(main())
"""


def test_the_offline_model_leaves_no_trace_of_its_use(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PATH": os.defpath, "HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )

    assert (ran.stdout, ran.stderr) == ("384\n", "")
    assert list(tmp_path.rglob("*")) == []
