"""Files that outlive crashes: what memos and ledgers are kept in."""
