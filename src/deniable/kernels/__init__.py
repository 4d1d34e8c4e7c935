"""The compiled loops. No policy here: a kernel gets arrays and integers and does what it is told.

Numba takes half a second to import, so this package is imported inside the functions that need it;
a client that privatises a handful of answers never loads it.
"""
