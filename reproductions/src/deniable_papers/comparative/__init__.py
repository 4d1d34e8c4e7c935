"""Le and Zia, "Discrete Distribution Estimation with Local Differential Privacy" (2021).

Tables I-IV, Figures 2-5 and the claims of the text. The paper says "default values of parameters":
`designs.READINGS` holds the settings that explain its tables, next to correct ones.
"""
