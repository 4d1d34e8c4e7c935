"""Run against an installed wheel in a clean environment: the base install does the main job."""

from pathlib import Path

import numpy as np

import deniable as dn

answers = np.random.default_rng(7).choice(["car", "train", "other"], 5_000, p=[0.6, 0.3, 0.1])
for name in ("grr", "oue", "ss", "olh", "hr"):
    mechanism = dn.mechanism(name, ["car", "train", "other"], epsilon=2.0)
    estimate = mechanism.tally(mechanism.privatize(answers)).estimate()
    assert abs(estimate.frequencies[0] - 0.6) < 0.15, estimate
    assert mechanism.guarantee.epsilon <= 2.0
    print(estimate)
package = Path(dn.__file__).parent
assert (package / "py.typed").exists()
static = package / "service" / "static"
for name in ("client.js", "promise.js", "book.js", "dashboard.html", "answer.html", "style.css"):
    assert (static / name).stat().st_size, name
assert "Client" in (static / "client.js").read_text()
print("the wheel works")
