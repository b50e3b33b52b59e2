"""What articles say of JAX and PyTorch, as manifests with verdicts: the ledger, what settles a claim, the page."""
