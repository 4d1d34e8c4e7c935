"""Numbers: the mean of answers that are numbers of a range."""
