"""What all tests share: Hypothesis with the same examples in every run, and a database server."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

import postgres

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


def pytest_collection_modifyitems(items):
    """Mark tests by the fixtures that they use."""
    for item in items:
        for fixture, mark in (("server", "postgres"), ("browser", "browser")):
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(mark)
