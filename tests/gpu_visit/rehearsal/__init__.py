"""Rehearse a visit from nothing to imported results, with processors in place of the GPU."""
