"""The collector: an HTTP server that validates reports, keeps them safe, and counts them once."""
