"""Privacy you can check: what shuffling adds, and what a report gives away, in plain words."""
