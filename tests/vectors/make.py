"""Write the test vectors of the current format version.

New mechanisms are appended; what is there already changes only when a new version begins.

python tests/vectors/make.py tests/vectors/v1
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

import deniable as dn
from deniable.domain import text_code
from deniable.randomness import WORD_BYTES, ByteCoins

MECHANISMS = [
    dn.BRR(["no", "yes"], 1.0),
    dn.GRR(10, 0.5),
    dn.GRR(["car", "train", "other"], 2.0),
    dn.SUE(13, 1.0),
    dn.OUE(100, 1.0),
    dn.UE(9, p=0.75, q=0.5),
    dn.SS(20, 1.0),
    dn.BLH(50, 1.0),
    dn.OLH(50, 2.0),
    dn.HR(21, 1.0),
    dn.HR(21, 3.0, block=8, seed=-1),
    dn.HRR(21, 1.0),
    dn.HRR(["no", "yes"], 3.0),
    dn.SHist(21, 2.0, b=64, seed=5),
    dn.SHist(21, 0.5),
    dn.THE(13, 1.0),
    dn.SHE(11, 1.0),
    dn.SHE(7, 2.0, steps=3, reach=2),
    dn.SHE(5, 4.0, steps=2, reach=0),
    dn.BasicRAPPOR(13, 1.0),
    dn.BasicRAPPOR(9, f=0.5, p=0.75, q=0.5),
    dn.CMS(50, 1.0, cohorts=100, width=20, seed=1),
    dn.CMS(["car", "train", "other"], 2.0, cohorts=16, width=128),
    dn.HCMS(50, 1.0, cohorts=64, width=32),
    dn.HCMS(dn.Text(), 3.0, cohorts=1024, width=100, seed=9),
    dn.ORR(50, 2.0, cohorts=64, width=8),
    dn.ORR(["car", "train", "other"], 2.0, cohorts=16, width=2, permuted=0),
    dn.ORR(dn.Text(), 2.0, cohorts=1000, width=8, seed=2**32 - 1),
    dn.ORAPPOR(50, 2.0, cohorts=64, width=40, permuted=1),
    dn.ORAPPOR(dn.Text(), 2.0, cohorts=64, width=40, hashes=3),
    dn.RAPPOR(dn.Text(), 2.0, cohorts=64, width=16, hashes=2),
    dn.RAPPOR(dn.Text(), f=0.5, p=0.75, q=0.5, cohorts=64, width=16, hashes=2),
    dn.LGRR(10, 2.0, 1.0),
    dn.LGRR(10, 2.0, 1.0, calibration="paper"),
    dn.LSUE(13, 2.0, 1.0),
    dn.LOUE(13, 2.0, 1.0),
    dn.LSOUE(13, 2.0, 1.0),
    dn.LOSUE(["car", "train", "other"], 4.0, 1.5),
    dn.LBLH(50, 1.0),
    dn.LOLH(50, 4.0, 2.0),
    dn.DBitFlip(20, 1.0),
    dn.DBitFlip(20, 1.0, w=1),
    dn.DBitFlipPM(13, 2.0, w=13),
]
TEXTS = ("", "https://example.org/", "Z\u00fcrich \U0001f600")


def plain(report):
    """A report as JSON: bytes as hex, tuples as lists."""
    if isinstance(report, tuple):
        return [plain(part) for part in report]
    return report.hex() if isinstance(report, bytes) else report


def answers(m):
    """Some answers: indices, or texts."""
    return TEXTS if m.domain == dn.Text() else (0, m.domain.size // 2, m.domain.size - 1)


def index(answer):
    """What `report` takes; texts are hashed as they are here (texts.json has the tidying)."""
    return text_code(answer) if isinstance(answer, str) else answer


def coins(label, words):
    return hashlib.shake_256(label.encode()).digest(words * WORD_BYTES)


def main(folder):
    vectors = []
    for number, m in enumerate(MECHANISMS):
        reports = []
        for value in answers(m):
            data = coins(f"{number}/{value}", m.coin_words)
            report = m.report(index(value), ByteCoins(data))
            reports.append({"value": value, "coins": data.hex(), "report": plain(report)})
        vectors.append({"spec": m.to_spec(), "reports": reports})
    (folder / "reports.json").write_text(json.dumps(vectors, indent=1) + "\n")
    if not (folder / "tally.bin").exists():
        write_tally(folder)


def write_tally(folder):
    m = dn.OUE(["car", "train", "other"], 1.0)
    reports = m.privatize(["car", "train", "car"] * 20, np.random.default_rng(1))
    reports.ids = np.arange(60 * 16, dtype=np.uint16).astype(np.uint8).reshape(60, 16)
    (folder / "tally.bin").write_bytes(m.tally(reports).to_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
