"""Repeated collection: a tally for each round, their series, and what changed."""
