"""Compare results of different runs."""
