"""What was estimated, and tested: each file is about one kind of result."""

from deniable.views.estimation import estimates, numbers, pairs, testing

__all__ = ["estimates", "numbers", "pairs", "testing"]
