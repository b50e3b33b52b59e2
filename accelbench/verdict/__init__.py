"""Decide verdicts from certificates without failed checks, redact invalid results, and check expectations."""
