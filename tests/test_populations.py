"""Simulated populations: shares of listed answers."""

import inspect
from functools import partial

import numpy as np
import pytest

from deniable import populations
from deniable.cli.commands.choose import simulate
from deniable.cli.commands.manipulate import manipulate
from deniable.errors import InvalidArgument

FALLING = {
    "uniform": populations.uniform,
    "zipf": populations.zipf,
    "zipf 0": partial(populations.zipf, exponent=0),
    "zipf 1.2": partial(populations.zipf, exponent=1.2),
    "geometric": populations.geometric,
    "geometric 0.5": partial(populations.geometric, ratio=0.5),
    "step": partial(populations.step, few=1, rest=0.05),
    "spike": populations.spike,
}
ALL = {
    **FALLING,
    "gaussian": populations.gaussian,
    "binomial": partial(populations.binomial, chance=0.3),
    "dirichlet": partial(populations.dirichlet, rng=np.random.default_rng(1)),
}
NAN = float("nan")


@pytest.mark.parametrize("k", [2, 3, 64, 1000])
@pytest.mark.parametrize("name", ALL)
def test_shares_sum_to_one(name, k):
    shares = ALL[name](k)
    assert (shares.shape, shares.dtype) == ((k,), np.float64)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    if name in FALLING:
        assert np.all(np.diff(shares) <= 0)


def test_shares_are_what_their_parameters_say():
    assert populations.uniform(4).tolist() == [0.25] * 4
    assert populations.zipf(3, 2) == pytest.approx(np.array([36, 9, 4]) / 49)
    assert populations.geometric(3, 0.5) == pytest.approx(np.array([4, 2, 1]) / 7)
    assert populations.step(6, 2, 0.2) == pytest.approx([0.4, 0.4, *[0.05] * 4])
    assert populations.spike(8).tolist() == [0.2] * 5 + [0] * 3
    assert populations.spike(3).tolist() == [0.5, 0.5, 0]
    assert populations.binomial(3, 0.5) == pytest.approx([0.25, 0.5, 0.25])
    bell = populations.gaussian(64)
    assert bell.argmax() == 32
    assert bell[40] / bell[32] == pytest.approx(np.exp(-0.5))
    assert populations.gaussian(64, centre=0.25).argmax() == 16


def test_a_random_distribution_follows_its_generator():
    one, other = (populations.dirichlet(9, np.random.default_rng(seed)) for seed in (1, 2))
    assert np.array_equal(one, populations.dirichlet(9, np.random.default_rng(1)))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: populations.uniform(1), "k"),
        (lambda: populations.spike(2.0), "k"),
        (lambda: populations.zipf(1 << 25), "k"),
        (lambda: populations.binomial(True, 0.5), "k"),
        (lambda: populations.zipf(4, -1), "exponent"),
        (lambda: populations.zipf(4, NAN), "exponent"),
        (lambda: populations.zipf(4, "1"), "exponent"),
        (lambda: populations.geometric(4, 1), "ratio"),
        (lambda: populations.geometric(4, NAN), "ratio"),
        (lambda: populations.gaussian(4, centre=2), "centre"),
        (lambda: populations.gaussian(4, width=0), "width"),
        (lambda: populations.step(4, 4, 0.5), "few"),
        (lambda: populations.step(4, 0, 0.5), "few"),
        (lambda: populations.step(4, 1, 1), "rest"),
        (lambda: populations.step(4, 1, -0.1), "rest"),
        (lambda: populations.binomial(4, 0), "chance"),
        (lambda: populations.dirichlet(4, 1), "rng"),
    ],
)
def test_bad_arguments_are_named(call, name):
    with pytest.raises(InvalidArgument) as refused:
        call()
    assert refused.value.name == name


def test_whole_people_come_as_near_as_they_can():
    assert populations.people(populations.uniform(4), 10).tolist() == [2, 3, 3, 2]
    for shape in populations.POPULATIONS.values():
        shares = shape(50)
        counts = populations.people(shares, 1234)
        assert counts.sum() == 1234
        assert np.all(np.abs(counts - 1234 * shares) <= 1)


@pytest.mark.parametrize("command", [simulate, manipulate])
def test_the_commands_name_them_all(command):
    *most, last = populations.POPULATIONS
    words = f"{', '.join(most)} or {last}."
    hints = inspect.get_annotations(command, eval_str=True)
    assert any(
        getattr(one, "help", None) == f"Distribution of the answers: {words}"
        for one in hints["distribution"].__metadata__
    )
