"""Mechanisms of two steps: a draw that a device keeps, and one for every report."""
