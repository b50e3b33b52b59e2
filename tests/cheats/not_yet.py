"""Rows of the table that accelbench does not live up to yet."""

NOT_YET: frozenset[str] = frozenset()
