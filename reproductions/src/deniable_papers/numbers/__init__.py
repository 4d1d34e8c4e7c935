"""The numeric and ordinal systems of the survey (3.4, 3.5 and 4), beside the library's."""
