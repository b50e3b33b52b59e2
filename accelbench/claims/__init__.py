"""Settle what articles claim about JAX and PyTorch: the ledger, the rules, the page."""
