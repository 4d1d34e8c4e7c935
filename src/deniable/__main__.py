"""``python -m deniable`` is the ``deniable`` command."""

from deniable.cli import main

main()
