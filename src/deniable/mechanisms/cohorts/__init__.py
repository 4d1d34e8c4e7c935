"""Mechanisms whose respondents share public hash functions."""
