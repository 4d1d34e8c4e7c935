"""Linear regression on the cells of cohorts, for answers that share them (Kairouz et al. 2016)."""
