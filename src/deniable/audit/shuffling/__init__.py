"""Shuffling: what anonymity adds to the guarantee of one report."""
