"""The collector: an HTTP server that validates reports, keeps them safe, and counts them once."""

from deniable.extras import service as _check

_check()
