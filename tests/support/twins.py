"""Families whose code is a sibling's: only thresholds differ, which the exact laws look at."""

TWINS = {
    "lsue": "losue",
    "loue": "losue",
    "lsoue": "losue",
    "lblh": "lolh",
    "dbitflip": "dbitflippm",
    "pm": "window",
    "pmsub": "window",
    "sw": "window",
}
