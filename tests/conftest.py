"""What all tests share: the same examples of Hypothesis in every run, and servers."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

import postgres
import spark_sessions

# Tests that start a Python of their own import the same helpers there.
_inherited = os.environ.get("PYTHONPATH")
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).with_name("support")), _inherited])
)

settings.register_profile("deniable", derandomize=True, deadline=None)
settings.load_profile("deniable")


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server, or the reason why there is none."""
    place = postgres.programs()
    if place is None and os.environ.get("DENIABLE_CI"):
        place = postgres.install()
    if place is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    found = postgres.Postgres(place)
    yield found
    found.remove()


@pytest.fixture(scope="session")
def spark():
    """A Spark session with two cores of this machine, or the reason why there is none."""
    with spark_sessions.started() as found:
        yield found


def pytest_collection_modifyitems(items):
    """Mark tests by the fixtures that they use."""
    for item in items:
        for fixture, mark in (("server", "postgres"), ("browser", "browser"), ("spark", "spark")):
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(mark)
