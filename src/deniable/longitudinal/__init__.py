"""Collecting again and again: what devices remember, rounds, and what changes between them."""
