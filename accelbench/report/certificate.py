"""Summarize the certificate for a report: how many checks passed, which did not, and what to do. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from accelbench import figures
from accelbench.api.result import Check, CheckOutcome, Result
from accelbench.report import advice
from accelbench.validity.certificate import validity_checks
from accelbench.validity.check import CaseCheck, ValidityCheck, remedy_for


def failed_checks(result: Result) -> tuple[Check, ...]:
    """Return the checks that failed."""
    return _with_outcome(result, "failed")


def _with_outcome(result: Result, outcome: CheckOutcome) -> tuple[Check, ...]:
    return tuple(check for check in result.certificate.checks if check.outcome == outcome)


def summary(result: Result) -> str:
    """Return `all 14 checks passed`, or how many passed and which failed, are untested or need more rounds."""
    checks = result.certificate.checks
    if not checks:
        return "no check was made"
    if worst_outcome(result) == "passed":
        return "the only check passed" if len(checks) == 1 else f"all {len(checks)} checks passed"
    passed = f"{Counter(check.outcome for check in checks)['passed']} of {len(checks)} checks passed"
    if only_needs_rounds(result):
        return f"{passed}; {_rounds_needed(_with_outcome(result, 'untested'))}"
    outcomes: tuple[CheckOutcome, ...] = ("failed", "untested")
    others = ((outcome, _with_outcome(result, outcome)) for outcome in outcomes)
    return ", ".join(
        (passed, *(f"{len(group)} {outcome} ({', '.join(_names(group))})" for outcome, group in others if group))
    )


def only_needs_rounds(result: Result) -> bool:
    """Return True if the only checks that did not pass need more rounds than there are."""
    untested = _with_outcome(result, "untested")
    if worst_outcome(result) != "untested" or not untested:
        return False
    return all(rounds_for(check.name) > result.rounds for check in untested)


def rounds_for(name: str) -> int:
    """Return how many rounds the check of this name needs to be tested; 0 if any number is enough, or it is unknown."""
    check = _find_check(name)
    return check.rounds if isinstance(check, CaseCheck) else 0


def _rounds_needed(checks: Sequence[Check]) -> str:
    """Return `2 need more rounds (autocorrelated: 20)`."""
    needs = ", ".join(f"{name}: {rounds_for(name)}" for name in dict.fromkeys(check.name for check in checks))
    return f"{len(checks)} need{'s' if len(checks) == 1 else ''} more rounds ({needs})"


def _names(checks: Sequence[Check]) -> Iterator[str]:
    """Yield each check's name once, with the variant if it is about only one."""
    for name in dict.fromkeys(check.name for check in checks):
        variants = [check.variant for check in checks if check.name == name and check.variant]
        about = f" for {variants[0]}" if len(variants) == 1 else f" for {len(variants)} variants" if variants else ""
        yield f"{name}{about}"


def worst_outcome(result: Result) -> CheckOutcome:
    """Return the most severe outcome; `untested` if there are no checks."""
    outcomes = {check.outcome for check in result.certificate.checks}
    return "failed" if "failed" in outcomes else "passed" if outcomes == {"passed"} else "untested"


def failure_lines(result: Result) -> tuple[str, ...]:
    """Return a line for each variant that failed, then one for each failed check, with what to do about it."""
    lines = list(failures(result))
    failed = failed_checks(result)
    for name in dict.fromkeys(check.name for check in failed):
        first, *others = (check for check in failed if check.name == name)
        also = figures.join_names([check.variant for check in others if check.variant])
        words = [check_line(first), f"It failed for {also} too." if also else "", _remedy(name, result)]
        lines.append(" ".join(filter(None, words)))
    return tuple(lines)


def _find_check(name: str) -> ValidityCheck | None:
    """Return the check of this name; None if only another version of accelbench has it."""
    return next((check for check in validity_checks() if check.name == name), None)


def _remedy(name: str, result: Result) -> str:
    """Return what to do about a failed check; empty for a disturbance that was accepted or has advice elsewhere."""
    check = _find_check(name)
    advised = result.noisy or advice.disturbances_prevent_verdict(result)
    if check is None or (name in advice.ADVICE_BY_CHECK and advised):
        return ""
    remedy = remedy_for(check, result.fingerprint)
    return f"What to do: {remedy}." if remedy else ""


def check_line(check: Check) -> str:
    """Return a check with its reading: `parity (jax/jit): READING. Required: THRESHOLD.`."""
    about = f" ({check.variant})" if check.variant else ""
    threshold = f". Required: {check.threshold}." if check.threshold else ""
    return f"{check.name}{about}: {check.reading}{threshold}"


def failures(result: Result) -> tuple[str, ...]:
    """Return a line for each variant that failed, with reason, place and message."""
    lines = []
    for variant in result.variants:
        if (failure := variant.failure) is not None:
            phase = f", phase {failure.phase}" if failure.phase else ""
            lines.append(f"{variant.name} failed in round {failure.round}{phase} ({failure.reason}): {failure.message}")
    return tuple(lines)
