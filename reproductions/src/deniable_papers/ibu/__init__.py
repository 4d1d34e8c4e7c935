"""Arcolezi, Cerna and Palamidessi, "On the Utility Gain of Iterative Bayesian Update for Locally
Differentially Private Mechanisms" (DBSec 2023).

Tables 2-3, Figures 1-4, and the claims of their text, in three settings: what the text prints,
what the authors' software does, and what is right.
"""
