"""Report a suite: several runs on one page."""
