"""The laws that every mechanism obeys, as functions that raise when one is broken.

``for law in laws_of(MyMechanism): law(MyMechanism)`` judges a family by running its code: the exact
channel on small domains, the bulk path against it, the layout of its reports, the tally, what is
done with bad input (`CHANNEL_LAWS`), and the laws of its tasks: what is estimated from its reports
(`TASK_LAWS`, by the name of the task). The test suite runs all laws on every registered
family, and plants bugs to show that each law can fail. Needs PyArrow (``pip install
'deniable[dev]'``).

A statistical law has a fixed seed and computes how probable a result at least as extreme is if the
family is right; it fails below FALSE_ALARM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deniable.conformance.channel import (
    bad_input,
    bulk_channel,
    columns,
    every_part_counts,
    exact_at_scale,
    exact_coins,
    exact_epsilon,
    fixed_coins,
    fresh_coins,
    layout,
    monoid,
    one_path,
    reproducible,
    tally_bytes,
    value_semantics,
)
from deniable.conformance.distributions import DISTRIBUTION_LAWS
from deniable.conformance.frequencies import FREQUENCY_LAWS
from deniable.conformance.members import (
    FALSE_ALARM,
    Family,
    LawBroken,
    check,
    large,
    refused,
    reports_of,
    small,
)
from deniable.conformance.memory import exact_histories, exact_memory
from deniable.conformance.numbers import MEAN_LAWS
from deniable.conformance.shares import SHARES_LAWS

__all__ = [
    "CHANNEL_LAWS", "FALSE_ALARM", "TASK_LAWS", "Family", "Law", "LawBroken", "check",
    "exact_coins", "large", "laws_of", "refused", "reports_of", "small",
]  # fmt: skip

Law = Callable[[Any], None]

#: What holds for any mechanism, whatever its reports are good for.
CHANNEL_LAWS: tuple[Law, ...] = (
    exact_epsilon,
    exact_memory,
    exact_histories,
    fixed_coins,
    bulk_channel,
    exact_at_scale,
    one_path,
    layout,
    monoid,
    tally_bytes,
    value_semantics,
    every_part_counts,
    columns,
    bad_input,
    reproducible,
    fresh_coins,
)


#: What holds for the estimates of a task, by its name; a new task adds its own.
TASK_LAWS: dict[str, tuple[Law, ...]] = {
    "frequencies": FREQUENCY_LAWS,
    "mean": MEAN_LAWS,
    "distribution": DISTRIBUTION_LAWS,
    "shares": SHARES_LAWS,
}


def laws_of(family: Family) -> tuple[Law, ...]:
    """The laws of channels, and those of the family's tasks."""
    return (*CHANNEL_LAWS, *(law for task in family.tasks for law in TASK_LAWS.get(task, ())))
