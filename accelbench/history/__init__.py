"""Results of different runs against each other."""
