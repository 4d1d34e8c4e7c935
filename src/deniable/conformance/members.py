"""What laws are tried on: members of a family with few answers and with many, and their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Choice
from deniable.core.domain import Domain
from deniable.core.mechanism import Mechanism
from deniable.core.reports import Reports
from deniable.privacy import Channel
from deniable.randomness import draw_key

Family = type[Mechanism]

FALSE_ALARM = 1e-9
EPSILONS = (0.5, 1.0, 3.0)
LARGE_EPSILONS = (4.0, 1.0)
#: Numbers of answers for which code may do something else than for a few (past a word, a byte, and
#: half a thousand), with an epsilon.
WIDE = {65: 1.0, 300: 5.0, 1000: 1.0}


class LawBroken(AssertionError):
    """A family broke a law."""


def check(broken: Any, law: str, mechanism: Any, found: str) -> None:
    """Raise if ``broken``."""
    if broken:
        raise LawBroken(f"{law}: {mechanism!r}: {found}")


def refused(
    law: str,
    m: Mechanism,
    kind: type[Exception],
    action: Callable[..., Any],
    *given: Any,
    **named: Any,
) -> None:
    """Check that ``action(*given, **named)`` raises an error of this kind."""
    try:
        result = action(*given, **named)
    except kind:
        return
    check(True, law, m, f"should have been refused with {kind.__name__}, gave {result!r}")


# ---- members


def small(family: Family) -> Iterator[Mechanism]:
    """Members whose channel can be enumerated."""
    domains = list(family.small_domains())
    check(not domains, "small", family, "takes no kind of answer that has `smalls` to enumerate")
    for epsilon in EPSILONS:
        for domain in domains:
            yield family.example(domain, epsilon, **family.small_design)


def large(family: Family, n: int = 2_000) -> Iterator[Mechanism]:
    """Members of realistic sizes, with a design for n respondents where it depends on them."""
    for domain, epsilon in zip(large_domains(family), cycle(LARGE_EPSILONS), strict=False):
        yield suited(family, domain, epsilon, n)


def wide(family: Family) -> Iterator[Mechanism]:
    """Members with many answers, where a family allows them; else its large members."""
    listed = [(Choice(size), epsilon) for size, epsilon in WIDE.items()]
    fitting = [pair for pair in listed if family.unsuited(pair[0]) is None]
    for domain, epsilon in fitting or zip(large_domains(family), cycle((1.0,)), strict=False):
        yield family.example(domain, epsilon)


def large_domains(family: Family) -> list[Domain]:
    """Domains as in real collections; small ones if the family takes no others."""
    found = [domain for kind in family.takes for domain in kind.larges()]
    fitting = [domain for domain in found if family.unsuited(domain) is None]
    return fitting or list(family.small_domains())


def suited(family: Family, domain: Domain, epsilon: float, n: int) -> Mechanism:
    """A member with a design for n respondents, where it depends on them."""
    suggest = getattr(family, "suggest", None)
    size = domain.size if domain.is_listed else None
    return family.example(domain, epsilon, **(suggest(epsilon, n, size=size) if suggest else {}))


def design_of(m: Mechanism) -> dict[str, int]:
    """The integers that choose the shape of the channel."""
    return {name: getattr(m, name) for name in m.design}


# ---- their reports


def values_of(m: Mechanism) -> Sequence[Any]:
    """Encoded answers: all of a list, else some."""
    return range(m.domain.size) if m.domain.is_listed else m.domain.sample()


def encoded(m: Mechanism, values: Sequence[Any], n: int) -> NDArray[Any]:
    """A column of n encoded answers that goes through the values in turn."""
    few: NDArray[Any] = np.array(list(values), dtype=m.domain.dtype)
    return few[np.arange(n) % len(few)]


def reports_of(m: Mechanism, values: Sequence[Any], n: int, seed: int) -> Reports:
    """The reports of such a column."""
    column = encoded(m, values, n)
    return Reports(m, m.randomise(column, draw_key(np.random.default_rng(seed))))


@lru_cache(maxsize=32)
def channel_of(m: Mechanism) -> Channel:
    """Several laws look at one channel, and enumerating it takes time."""
    return m.channel()


def as_bytes(data: NDArray[Any]) -> NDArray[np.uint8]:
    """Each report as a row of bytes."""
    return np.ascontiguousarray(data).view(np.uint8).reshape(len(data), -1)


def same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two columns have the same bytes."""
    return a.tobytes() == b.tobytes()
