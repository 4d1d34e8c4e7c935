"""Audits of black boxes: a lower bound on the epsilon of any client, from reports alone."""
