"""Explain verdicts: sentences that follow from numbers of a result by rules, and none where no rule applies. Pure."""
