"""The process that says what launches are worth: imports numpy and scipy.special, and ends."""
