"""What audits found; each file is about one kind of audit."""

from deniable.views.audit import findings, forging, inference

__all__ = ["findings", "forging", "inference"]
