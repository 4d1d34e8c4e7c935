"""Who may have spent what: budgets of people who take part in several collections."""

from deniable.ledger.ledger import Ledger

__all__ = ["Ledger"]
