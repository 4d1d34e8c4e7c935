"""Where things are in a checkout."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
VECTORS = TESTS / "vectors" / "v2"
#: Data sets beside the project; tests that read them skip where there are none.
SHARED = ROOT.parent / "shared" / "data"
