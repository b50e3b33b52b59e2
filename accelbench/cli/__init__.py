"""Implement the `accelbench` command."""
