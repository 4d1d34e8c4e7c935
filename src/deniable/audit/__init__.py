"""Privacy that can be checked: exact and empirical audits, shuffling, inference, manipulation."""
