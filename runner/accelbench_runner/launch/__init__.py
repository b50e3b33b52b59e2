"""Measure one variant once, in a process of its own that imports one framework."""
