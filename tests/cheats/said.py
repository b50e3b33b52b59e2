"""Compare the findings of a trial with its row."""

from cheats.table import Row
from cheats.trials import Trial

NOISE = {"unsteady", "unsynchronised"}
"""Checks that a crowded machine can fail for an honest program where one launch stands for all."""


def findings(row: Row, trial: Trial) -> str:
    """Return every finding about the variant other than a passed check."""
    failure, comparison = trial.launches[row.use].failure, trial.comparison(row.use)
    found = [f"{failure.reason}: {failure.message}"] if failure else []
    doubts = (check for check in trial.checks(row.use).values() if check.outcome != "passed")
    found += [f"{check.name} {check.outcome}: {check.reading}" for check in doubts]
    return "; ".join([*found, comparison.sentence if comparison else ""])


def complaint(row: Row, trial: Trial) -> str:
    """Return the missing finding, or an undue one about an honest program; empty if all is as required."""
    failure = trial.launches[row.use].failure
    reason = failure.reason if failure else None
    if reason != row.ends:
        return f"it ended as {reason}" if reason else f"it did not end as {row.ends}"
    if not row.ends and (wrong := _certified_wrongly(row, trial)):
        return wrong
    return "" if row.says.lower() in findings(row, trial).lower() else f"no finding contains {row.says!r}"


def _certified_wrongly(row: Row, trial: Trial) -> str:
    outcomes = {name: check.outcome for name, check in trial.checks(row.use).items()}
    failed = {name for name, outcome in outcomes.items() if outcome == "failed"}
    if failed & set(row.fails):
        return ""
    if row.fails and not row.unchecked:
        return f"none of {', '.join(row.fails)} failed"
    if row.unchecked:
        outcome, comparison = outcomes.get(row.unchecked, "no check of ours"), trial.comparison(row.use)
        if outcome != "untested":
            return f"{row.unchecked}: {outcome}"
        if comparison and comparison.verdict and "untested" not in comparison.sentence.lower():
            return f"a verdict does not say that {row.unchecked} is untested"
        return ""
    return ", ".join([f"{name} failed" for name in sorted(failed - NOISE)])
