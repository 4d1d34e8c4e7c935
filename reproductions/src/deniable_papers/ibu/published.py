"""Tables 2 and 3 as printed: average gains in percent, MSE and MAE of each mechanism in turn."""

from __future__ import annotations

from deniable_papers.ibu.designs import LONGITUDINAL, ONE_TIME

DISTRIBUTIONS = ("Gauss.", "Exp.", "Unif.", "Poiss.", "Triang.", "Real")
METRICS = ("MSE", "MAE")
AVERAGE = "Avg."
_TABLE_2 = """
1 1 13 7 10 6 3 1 13 7 16 9 11 7 9 5
16 11 26 15 27 16 19 11 26 15 16 10 27 16 22 13
0 0 29 21 20 14 14 10 31 22 57 43 18 12 24 17
39 28 41 26 44 28 41 27 41 27 14 6 46 30 38 24
0 0 21 13 15 9 10 6 23 14 36 21 15 9 17 10
31 21 40 23 42 25 34 19 42 25 21 11 44 27 36 21
14 10 28 17 26 16 20 12 29 18 26 16 26 16 24 15
"""
_TABLE_3 = """
14 5 13 8 9 5 10 7 12 7 2 0 7 4 9 5
4 1 27 16 26 15 27 16 27 16 4 2 20 12 19 11
36 25 31 22 12 8 16 11 18 13 54 43 21 16 26 19
5 2 43 28 48 32 49 32 44 29 11 6 42 30 34 22
28 17 24 15 11 7 13 9 16 10 26 14 14 9 18 11
4 1 43 25 43 27 44 27 43 25 9 4 34 22 31 18
15 8 30 19 24 15 26 17 26 16 17 11 23 15 23 14
"""

#: (distribution, mechanism, metric); either of the first two may be `AVERAGE`.
Place = tuple[str, str, str]


def _read(text: str, mechanisms: tuple[str, ...]) -> dict[Place, float]:
    columns = [(name, metric) for name in (*mechanisms, AVERAGE) for metric in METRICS]
    return {
        (row, *column): float(number)
        for row, line in zip((*DISTRIBUTIONS, AVERAGE), text.split("\n")[1:-1], strict=True)
        for column, number in zip(columns, line.split(), strict=True)
    }


#: The mechanisms and the numbers of each.
TABLES: dict[str, tuple[tuple[str, ...], dict[Place, float]]] = {
    "Table 2": (ONE_TIME, _read(_TABLE_2, ONE_TIME)),
    "Table 3": (LONGITUDINAL, _read(_TABLE_3, LONGITUDINAL)),
}
