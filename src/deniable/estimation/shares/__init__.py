"""Shares of answers of which people may tick several."""
