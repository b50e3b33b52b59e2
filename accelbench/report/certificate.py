"""Summarize the certificate for a report: how many checks passed, which did not, and what to do. Pure."""

from collections.abc import Iterator, Sequence

from accelbench import figures
from accelbench.api.result import Check, CheckOutcome, Result
from accelbench.report import advice
from accelbench.validity.certificate import validity_checks
from accelbench.validity.check import CaseCheck, ValidityCheck, remedy_for


def failed_checks(result: Result) -> tuple[Check, ...]:
    """Return the checks in a result's certificate that failed."""
    return _with_outcome(result, "failed")


def _with_outcome(result: Result, outcome: CheckOutcome) -> tuple[Check, ...]:
    """Return the checks in a result's certificate that have this outcome."""
    return tuple(check for check in result.certificate.checks if check.outcome == outcome)


def summary(result: Result) -> str:
    """Summarize all checks: `all 14 checks passed` or `12 of 14 checks passed, 2 failed (parity, drift)`."""
    checks = result.certificate.checks
    if not checks:
        return "no check was made"
    if worst_outcome(result) == "passed":
        return "the only check passed" if len(checks) == 1 else f"all {len(checks)} checks passed"
    failed, untested = failed_checks(result), _with_outcome(result, "untested")
    texts = [f"{len(checks) - len(failed) - len(untested)} of {len(checks)} checks passed"]
    if only_needs_rounds(result):
        return f"{texts[0]}; {_describe_needed_rounds(untested)}"
    if failed:
        texts.append(f"{len(failed)} failed ({', '.join(_check_names(failed))})")
    if untested:
        texts.append(f"{len(untested)} untested ({', '.join(_check_names(untested))})")
    return ", ".join(texts)


def only_needs_rounds(result: Result) -> bool:
    """Return True if no check failed, but some are untested, only because they need more rounds than were measured."""
    untested = _with_outcome(result, "untested")
    if worst_outcome(result) != "untested" or not untested:  # without any check, the worst outcome is `untested` too
        return False
    return all(minimum_rounds_of(check.name) > result.rounds for check in untested)


def minimum_rounds_of(name: str) -> int:
    """Return how many rounds the check with this name needs at least; 0 if it needs none or does not exist."""
    check = _find_check(name)
    return check.rounds if isinstance(check, CaseCheck) else 0


def _describe_needed_rounds(checks: Sequence[Check]) -> str:
    """Return how many checks need more rounds, and how many rounds: `2 need more rounds (autocorrelated: 20)`."""
    names = dict.fromkeys(check.name for check in checks)
    rounds = ", ".join(f"{name}: {minimum_rounds_of(name)}" for name in names)
    return f"{len(checks)} need{'s' if len(checks) == 1 else ''} more rounds ({rounds})"


def _check_names(checks: Sequence[Check]) -> Iterator[str]:
    """Yield the name of each check once, with its variants: `parity for jax/jit` or `parity for 2 variants`."""
    for name in dict.fromkeys(check.name for check in checks):
        variants = [check.variant for check in checks if check.name == name and check.variant]
        if not variants:
            yield name
        elif len(variants) == 1:
            yield f"{name} for {variants[0]}"
        else:
            yield f"{name} for {len(variants)} variants"


def worst_outcome(result: Result) -> CheckOutcome:
    """Return the most severe outcome of a result's checks; `untested` if there are no checks."""
    outcomes = {check.outcome for check in result.certificate.checks}
    if "failed" in outcomes:
        return "failed"
    return "passed" if outcomes == {"passed"} else "untested"


def failure_lines(result: Result) -> tuple[str, ...]:
    """Return a line for each failed variant, then a line for each failed check: its variants and what to do."""
    lines = list(failures(result))
    failed = failed_checks(result)
    for name in dict.fromkeys(check.name for check in failed):
        first, *others = (check for check in failed if check.name == name)
        sentences = [check_line(first)]
        other_variants = [check.variant for check in others if check.variant]
        if other_variants:
            sentences.append(f"It failed for {figures.join_names(other_variants)} too.")
        if remedy := remedy_sentence(name, result):
            sentences.append(remedy)
        lines.append(" ".join(sentences))
    return tuple(lines)


def _find_check(name: str) -> ValidityCheck | None:
    """Return the check with this name; None if this version does not have it."""
    return next((check for check in validity_checks() if check.name == name), None)


def remedy_sentence(name: str, result: Result) -> str:
    """Return a sentence that advises what to do about the failed check `name`; empty without advice."""
    check = _find_check(name)
    if check is None:
        return ""
    detects_disturbances = name in advice.ADVICE_BY_CHECK
    # If the result is noisy, the user has accepted disturbances. If disturbances prevent the verdict,
    # `advice.describe_disturbed_rounds` already gives this advice.
    if detects_disturbances and (result.noisy or advice.disturbances_prevent_verdict(result)):
        return ""
    remedy = remedy_for(check, result.fingerprint)
    return f"What to do: {remedy}." if remedy else ""


def check_line(check: Check) -> str:
    """Return a check as text: its name, its variant, what was measured, and what is required."""
    about = f" ({check.variant})" if check.variant else ""
    threshold = f". Required: {check.threshold}." if check.threshold else ""
    return f"{check.name}{about}: {check.reading}{threshold}"


def failures(result: Result) -> tuple[str, ...]:
    """Return a line for each failed variant: the round, the phase, the reason and the message of the failure."""
    lines = []
    for variant in result.variants:
        if (failure := variant.failure) is not None:
            phase = f", phase {failure.phase}" if failure.phase else ""
            lines.append(f"{variant.name} failed {failure.when}{phase} ({failure.reason}): {failure.message}")
    return tuple(lines)
