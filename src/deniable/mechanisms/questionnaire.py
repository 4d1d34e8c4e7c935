"""Several questions to one person, as one channel from all answers to one report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from deniable.errors import InvalidArgument
from deniable.mechanisms.base import Mechanism
from deniable.privacy import Channel, Guarantee, exact_channel, parallel, sequential
from deniable.randomness import WORD_BYTES, ByteCoins, Coins, Keystream, draw_key

if TYPE_CHECKING:
    from numpy.random import Generator

MODES = ("split", "sampled")


class Questionnaire:
    """Named questions, each with a mechanism of its own.

    In the mode "split" every question is answered: the epsilons add up, and `privacy.split` says
    how to divide a whole. In the mode "sampled" one question is drawn for each person, whatever the
    answers are; only its answer is reported, and the person spends the largest of the epsilons.
    """

    def __init__(self, questions: Mapping[str, Mechanism], mode: str = "split") -> None:
        usable = isinstance(questions, Mapping) and len(questions) > 0
        if not usable or not all(isinstance(m, Mechanism) for m in questions.values()):
            raise InvalidArgument("questions", questions, "a mechanism for each of some names")
        if mode not in MODES:
            raise InvalidArgument("mode", mode, f"one of {', '.join(MODES)}")
        self.questions = dict(questions)
        self.mode = mode
        self._mechanisms = tuple(self.questions.values())

    def report(self, answers: Sequence[int], coins: Coins) -> tuple[Any, ...]:
        """All reports in the order of the questions, or the drawn question's place and report.

        A pure function of the answers (one index a question) and the coins that always draws
        `coin_words` words.
        """
        if self.mode == "split":
            pairs = zip(self._mechanisms, answers, strict=True)
            return tuple(m.report(answer, coins) for m, answer in pairs)
        place = coins.choice(len(self._mechanisms))
        asked = self._mechanisms[place]
        report = asked.report(answers[place], coins)
        for _ in range(self.coin_words - 1 - asked.coin_words):
            coins.choice(1)  # no choice at all, but a word: every question draws as many
        return place, report

    @cached_property
    def coin_words(self) -> int:
        """The number of 64-bit words that one report draws, whatever the answers."""
        words = [m.coin_words for m in self._mechanisms]
        return sum(words) if self.mode == "split" else 1 + max(words)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one report promises about all answers together.

        ``guarantee.after(t)`` is about t reports with fresh coins. Who draws the question anew for
        each of them may ask all of them in time: it is then t times the largest epsilon, too.
        """
        compose = sequential if self.mode == "split" else parallel
        return compose(m.once for m in self._mechanisms)

    def channel(self) -> Channel:
        """The exact channel matrix over all tuples of answers; for small domains."""
        answers = list(product(*(range(m.domain.size) for m in self._mechanisms)))
        return exact_channel(lambda i, coins: self.report(answers[i], coins), range(len(answers)))

    def respond(self, answers: Mapping[str, Any], rng: Generator | None = None) -> dict[str, Any]:
        """One person's reports by question: of all questions, or of the drawn one."""
        if not isinstance(answers, Mapping) or set(answers) != set(self.questions):
            raise InvalidArgument("answers", answers, f"one for each of {list(self.questions)}")
        indices = [int(m.domain.encode([answers[q]])[0]) for q, m in self.questions.items()]
        coins = ByteCoins(Keystream(draw_key(rng)).bytes(self.coin_words * WORD_BYTES))
        report = self.report(indices, coins)
        coins.finish()
        names = list(self.questions)
        if self.mode == "sampled":
            return {names[report[0]]: report[1]}
        return dict(zip(names, report, strict=True))

    def __repr__(self) -> str:
        return f"Questionnaire({self.questions!r}, mode={self.mode!r})"

    def __str__(self) -> str:
        return f"questionnaire of {len(self.questions)} questions, {self.mode}"
