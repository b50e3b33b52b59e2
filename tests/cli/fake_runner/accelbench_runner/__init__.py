"""A runner that measures nothing: found before the real one, it says what its script tells it to."""
