"""Forged respondents: what they can achieve, what detects them, and what bounds them."""
