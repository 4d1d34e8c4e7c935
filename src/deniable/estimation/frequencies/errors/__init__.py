"""Standard errors and intervals of frequencies: score, exact and bootstrap."""
