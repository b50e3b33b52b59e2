"""A device of somebody else's."""
