"""Tables I-IV as printed: means and standard deviations of the mean absolute error."""

from __future__ import annotations

from dataclasses import dataclass

MECHANISMS = ("k-RR", "bRAPPOR", "CMS", "k-subset", "HR")
#: Half a unit of the last digit.
ROUNDING = 0.0005


@dataclass(frozen=True)
class Attribute:
    """A row of Table I: ``source`` and ``column`` say where it is in `deniable_papers.datasets`."""

    data: str
    name: str
    n: int
    d: int
    source: str
    column: str

    @property
    def runs(self) -> int:
        """How often the paper ran it."""
        return 10 if self.data == "USCensus1990" else 100


ATTRIBUTES = (
    Attribute("Statlog", "A4", 690, 3, "australian", "A4"),
    Attribute("Statlog", "A6", 690, 8, "australian", "A6"),
    Attribute("Statlog", "A5", 690, 14, "australian", "A5"),
    Attribute("Adult", "Race", 32_561, 5, "adult", "race"),
    Attribute("Adult", "Occ", 32_561, 15, "adult", "occupation"),
    Attribute("Adult", "Country", 32_561, 42, "adult", "native_country"),
    Attribute("USCensus1990", "Military", 2_458_285, 5, "census1990", "MILITARY"),
    Attribute("USCensus1990", "Rvetserv", 2_458_285, 12, "census1990", "RVETSERV"),
    Attribute("USCensus1990", "Race", 2_458_285, 63, "census1990", "RACE"),
    Attribute("USCensus1990", "PoB", 2_458_285, 283, "census1990", "POB"),
)
#: What the data sets must have.
COLUMNS = {
    source: tuple(one.column for one in ATTRIBUTES if one.source == source)
    for source in ("australian", "adult", "census1990")
}
#: The table of each epsilon.
TABLES = {0.5: "Table II", 1.0: "Table III", 2.0: "Table IV"}
#: Mean and standard deviation by `MECHANISMS`, one line an attribute, in thousandths.
_DIGITS = {
    0.5: """
        67 36  50 24  109 54  63 37  78 48
        83 30  43 14   89 30  82 22  71 23
        83 13  50 10   86 21  85 14  61 11
        12  5   8  2   15  6  13  4  14  5
        24  5   9  2   16  3  15  3  15  3
         8  2   5  1   10  2  10  1  13  2
         2  1   1  0    2  1   2  1   2  1
         3  1   1  0    2  0   2  0   2  1
         1  0  16  0   23  0   1  0   2  0
         4  0   4  0    5  0   1  0   1  0""",
    1.0: """
        33 20  50 23  44 25  34 20  106 40
        41 13  44 13  43 14  44 13   48 15
        54 11  49 11  49 10  51  9   46  8
         6  2   8  3   8  3   7  2    8  3
        10  2   8  2   8  2   8  2   16  3
         5  1   5  1   5  1   6  1    8  1
         1  0   1  0   1  0   1  0    1  0
         1  0   1  0   1  0   1  0    1  0
         1  0  16  0  21  0   1  0   10  0
         2  0   4  0   5  0   1  0    1  0""",
    2.0: """
        13  8  47 24  24 13  13  8  31 13
        18  5  47 14  25  6  27  8  29  8
        22  4  51 10  27  6  31  6  32  7
         3  1   8  3   4  2   4  1  55  2
         3  1   9  2   4  1   5  1   6  1
         3  0   5  1   3  0   4  0   7  1
         0  0   1  0   1  0   1  0  39  0
         0  0   1  0   1  0   1  0   0  0
         0  0  16  0  18  0   0  0   3  0
         1  0   4  0   4  0   0  0   1  0""",
}


def _parsed(digits: str) -> dict[tuple[str, str, str], tuple[float, float]]:
    found = {}
    for one, line in zip(ATTRIBUTES, digits.split("\n")[1:], strict=True):
        numbers = [int(word) / 1000 for word in line.split()]
        for place, mechanism in enumerate(MECHANISMS):
            pair = numbers[2 * place], numbers[2 * place + 1]
            found[one.data, one.name, mechanism] = pair
    return found


#: (data, attribute, mechanism) -> (mean, standard deviation), by epsilon.
LOSSES = {epsilon: _parsed(digits) for epsilon, digits in _DIGITS.items()}
