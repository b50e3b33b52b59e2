"""Measure one variant once, in a process of its own: the only one that imports a framework."""
