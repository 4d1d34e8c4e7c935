"""Hypothesis: the same examples in every run, and no verdicts on time."""

from hypothesis import settings

settings.register_profile("house", derandomize=True, deadline=None)
settings.load_profile("house")
