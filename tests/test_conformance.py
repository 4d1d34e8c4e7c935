"""Every law on every registered mechanism."""

import pytest

import deniable as dn
from deniable.conformance import LAWS

#: Families whose code is that of a sibling: only thresholds differ, which the exact laws look at.
TWINS = {
    "lsue": "losue",
    "loue": "losue",
    "lsoue": "losue",
    "lblh": "lolh",
    "dbitflip": "dbitflippm",
}
SLOW = {"bulk_channel", "bulk_supports", "simulated_errors", "coverage", "reproducible", "decoders",
        "largest_likelihood"}  # fmt: skip
CASES = [(name, law) for name in dn.mechanisms() for law in LAWS
         if not (name in TWINS and law.__name__ in SLOW)]  # fmt: skip


@pytest.mark.parametrize(("name", "law"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_law(name, law):
    law(dn.mechanisms()[name])


def test_twins_share_their_code():
    for name, sibling in TWINS.items():
        one, other = (dn.mechanisms()[family] for family in (name, sibling))
        for method in ("fill", "count", "unbiased", "variance_line", "privatize", "_simulate"):
            assert getattr(one, method) is getattr(other, method), method
