"""One launch as everybody reads it: what it timed, and what it read back. Parsed once, at the pipe."""
