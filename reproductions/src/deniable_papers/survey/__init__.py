"""T. Wang et al., "A Comprehensive Survey on Local Differential Privacy" (Sensors 2020).

Table 4 (frequency oracles) and Table 9 (means of numbers): variances, report sizes and, as the
paper only has orders, running times; and a map that the paper does not have: which mechanism and
decoder for which epsilon, number of values and number of respondents.
"""
