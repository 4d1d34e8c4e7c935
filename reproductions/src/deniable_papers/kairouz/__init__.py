"""Kairouz, Bonawitz and Ramage, "Discrete Distribution Estimation under Local Privacy" (ICML 2016).

Propositions 3-5, Figures 1-3, and the claims that their text makes. The figures have no numbers and
the text does not give their axes (k and epsilon of Figures 1-2, epsilon of Figure 3): the grids
here are ours, and what is compared with the paper are its claims about them.
"""
