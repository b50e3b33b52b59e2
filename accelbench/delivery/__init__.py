"""Carry results out of pods, and recover what a killed pod left."""
