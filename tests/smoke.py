"""Run against an installed wheel in a clean environment: the base install does the main job."""

import json
import re
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
hours = np.random.default_rng(8).uniform(4, 10, 5_000)
mean = dn.DRR(dn.Number(0, 24), epsilon=2.0)
found = mean.tally(mean.privatize(hours)).estimate()
assert abs(found.mean - 7) < 1.5, found
print(found)
package = Path(dn.__file__).parent
assert (package / "py.typed").exists()
static = package / "service" / "static"
for name in ("dashboard.html", "answer.html", "style.css"):
    assert (static / name).stat().st_size, name
client = static / "client"
wanted = {f"{module}.js" for module in json.loads((client / "families.json").read_text())}
for file in client.glob("*.js"):
    wanted |= set(re.findall(r"'\./(\w+\.js)'", file.read_text()))
assert {"core.js", "numbers.js"} <= wanted <= {file.name for file in client.glob("*.js")}, wanted
print("the wheel works")
