"""Laws of devices that remember: what one draw, and a history of answers, costs in many reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

from deniable.audit.exact.checks import SLACK
from deniable.audit.exact.histories import worst_histories
from deniable.audit.exact.verify import MEMO_SIZE, memory
from deniable.conformance.members import Family, check, refused, small
from deniable.core.domain import Domain
from deniable.errors import BrokenPromise, InvalidArgument
from deniable.mechanisms.two_step.memoised import Memoised
from deniable.privacy.guarantee import CONTEXT, as_decimal, float_above
from deniable.randomness import WORD_BYTES, ByteCoins, Keystream

#: Answers, rounds and changes of the histories that are enumerated.
HISTORIES = ((2, 4, 0), (2, 4, 1), (2, 3, 2), (3, 3, 0), (3, 3, 1), (3, 3, 2))
#: Designs for these: few reports, and answers that share what they can share.
NARROW = {"w": 1, "width": 2}


def exact_memory(family: Family) -> None:
    """If a device remembers: t reports from one draw cost exactly what the guarantee says.

    The draw itself costs what all reports together do, and each step draws the declared words.
    """
    for m in small(family):
        if not isinstance(m, Memoised) or (m.domain.is_listed and m.domain.size > MEMO_SIZE):
            continue
        _fixed_steps(m)
        for judged in memory(m):
            check(judged.verdict != "ok", "exact_memory", m, judged.words)
        for reports in (1, 2):
            stated, exact = m.permanent_guarantee, m.permanent_guarantee.exactly(reports).epsilon
            claimed = stated.after(reports=reports)
            text = f"{reports} reports cost {exact}, stated {claimed}"
            check(not exact <= claimed <= exact + SLACK, "exact_memory", m, text)


def _fixed_steps(m: Memoised) -> None:
    stream = Keystream(bytes(32))
    begin, memoise, instant = (
        ByteCoins(stream.bytes(words * WORD_BYTES))
        for words in (m.begin_words, m.memoise_words, m.instant_words)
    )
    begun = m.begin(begin)
    m.instant(begun, m.memoise(begun, m.key(begun, 0), memoise), instant)
    for coins in (begin, memoise, instant):
        coins.finish()


def exact_histories(family: Family) -> None:
    """If a device remembers: whole histories of answers cost at most what is reckoned for them.

    Enumerated are all pairs of histories that the number covers: those in which the same rounds
    have equal answers. A mechanism in which answers share a draw is refused where they may change.
    """
    if not family.remembers:
        return
    for m, values, rounds, changes in _panels(family):
        if changes and not family.key_is_value:
            refused("exact_histories", m, BrokenPromise, m.log_spent, rounds, changes)
            continue
        declared = float_above(m.log_spent(rounds, changes))
        worst = worst_histories(m, rounds, changes, values)
        found = Decimal("inf") if worst is None else CONTEXT.ln(as_decimal(worst))
        text = f"{rounds} rounds, {changes} changes cost {found}, declared {declared}"
        check(not found <= Decimal(declared), "exact_histories", m, text)


def _panels(family: Any) -> Iterator[tuple[Memoised, Sequence[int], int, int]]:
    """Members, values, rounds and changes; some whose reports tell much about what is kept."""
    narrow = {name: NARROW[name] for name in family.design if name in NARROW}
    design = {**family.small_design, **narrow}
    for size, rounds, changes in HISTORIES:
        domain, values = _answers(family, size)
        for epsilon in (0.5, 2.0):
            yield family(domain, epsilon, **design), values, rounds, changes
        if "epsilon_1" in family.budgets:
            with suppress(InvalidArgument):  # an epsilon_1 that the family cannot have
                yield family(domain, 1.0, 0.9, **design), values, rounds, changes


def _answers(family: Family, size: int) -> tuple[Domain, Sequence[int]]:
    """So many listed answers, or as many others that lie far apart."""
    listed = Domain([str(value) for value in range(size)])
    if family.unsuited(listed) is None:
        return listed, range(size)
    domain = next(family.small_domains())
    sample = domain.sample()
    return domain, [sample[place * (len(sample) - 1) // (size - 1)] for place in range(size)]
