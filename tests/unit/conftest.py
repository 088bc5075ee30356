"""Rules by themselves: no server runs for them."""

from __future__ import annotations

import sys
from pathlib import Path

# The builders are shared by their file's name.
sys.path.insert(0, str(Path(__file__).parent))
