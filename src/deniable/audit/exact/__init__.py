"""Exact verification: run the shipped code over all its coins, and compare it with the promise."""
