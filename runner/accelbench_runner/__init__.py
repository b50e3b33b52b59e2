"""Measure one case: start launches in rounds, collect timed blocks, and stop when the verdict is precise enough."""
