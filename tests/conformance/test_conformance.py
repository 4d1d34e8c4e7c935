"""Every law on every registered mechanism."""

import pytest

import deniable as dn
from deniable.conformance import exact_coins, laws_of
from twins import TWINS

SLOW = {"bulk_channel", "bulk_supports", "simulated_errors", "simulated_counts", "coverage",
        "reproducible", "fresh_coins", "decoders", "largest_likelihood", "covered_shares",
        "quantiles"}  # fmt: skip
#: Slow laws about reports that are made one by one.
SINGLE = {"single_supports", "one_path"}
#: Slow laws that no twin is spared.
LONG = {"exact_at_scale", "exact_memory", "exact_histories"}
#: Families whose smallest channels are large, and those of which that slows only some laws.
LARGE = {"lolh", "lblh"}
LARGISH = {"blh", "dbitflip", "dbitflippm", "olh", "rappor", "she"}
ENUMERATING = {"exact_epsilon", "exact_moments"}


def shared(name, law):
    """Whether a sibling is judged instead."""
    known, sibling = dn.mechanisms(), TWINS.get(name, name)
    same = known[name].report is known[sibling].report
    spared = law.__name__ in SLOW or (same and law.__name__ in SINGLE)
    return name in TWINS and spared and law in laws_of(known[sibling])


def marks(name, law):
    long = law.__name__ in SLOW | SINGLE | LONG or name in LARGE
    long |= law.__name__ in ENUMERATING and name in LARGISH
    return [pytest.mark.slow] if long else []


CASES = [
    pytest.param(name, law, marks=marks(name, law))
    for name, family in dn.mechanisms().items()
    for law in laws_of(family)
    if not shared(name, law)
]


@pytest.mark.parametrize(("name", "law"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_law(name, law):
    law(dn.mechanisms()[name])


def test_coins_have_the_weights_that_are_enumerated():
    exact_coins()


def test_twins_share_their_code():
    for name, sibling in TWINS.items():
        one, other = (dn.mechanisms()[family] for family in (name, sibling))
        for method in (
            "fill",
            "count",
            "unbiased",
            "variance_line",
            "privatize",
            "simulated_counts",
        ):
            assert getattr(one, method, None) is getattr(other, method, None), method
