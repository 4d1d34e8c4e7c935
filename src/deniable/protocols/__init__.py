"""Protocols that need several rounds of their own."""
