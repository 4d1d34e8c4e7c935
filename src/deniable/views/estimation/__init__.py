"""What was estimated, and tested: each file is about one kind of result."""

from deniable.views.estimation import estimates, pairs, testing

__all__ = ["estimates", "pairs", "testing"]
