"""Describe the machine: its identity, its memory, its control groups."""
