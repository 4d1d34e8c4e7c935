"""The ``deniable`` command: `commands` has what people type, the files beside it what that does."""

from deniable.cli.app import app, main

__all__ = ["app", "main"]
