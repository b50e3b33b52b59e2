"""Decide verdicts from clean certificates, redact invalid results, and check expectations."""
