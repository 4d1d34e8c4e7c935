"""Frequencies: which share of the respondents gave each answer."""
