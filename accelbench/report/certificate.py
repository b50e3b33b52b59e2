"""What a report says of the certificate: how many checks passed, which did not, and what to do. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from accelbench import figures
from accelbench.api.result import Check, CheckOutcome, Result
from accelbench.report import noise
from accelbench.validity.certificate import validity_checks
from accelbench.validity.check import CaseCheck, ValidityCheck, remedy_for


def failed(result: Result) -> tuple[Check, ...]:
    """The checks that no verdict stands beside."""
    return tuple(check for check in result.certificate.checks if check.outcome == "failed")


def untested(result: Result) -> tuple[Check, ...]:
    """The checks that could not be made here, which is neither a pass nor a failure; each with its variant."""
    return tuple(check for check in result.certificate.checks if check.outcome == "untested")


def summary(result: Result) -> str:
    """`all 14 checks passed`, or how many did not, and which."""
    checks = result.certificate.checks
    if not checks:
        return "no check was made"
    if worst_outcome(result) == "passed":
        return "the only check passed" if len(checks) == 1 else f"all {len(checks)} checks passed"
    counts = Counter(check.outcome for check in checks)
    parts = [f"{counts['passed']} of {len(checks)} checks passed"]
    open_checks: dict[CheckOutcome, tuple[Check, ...]] = {
        "failed": failed(result),
        "untested": untested(result),
    }
    if only_rounds_lack(result):
        found = open_checks["untested"]
        return f"{parts[0]}; {_need_rounds(found)}"
    for outcome, found in open_checks.items():
        if found:
            parts.append(f"{len(found)} {outcome} ({', '.join(_whose(found))})")
    return ", ".join(parts)


def only_rounds_lack(result: Result) -> bool:
    """Whether nothing is wrong and nothing is amiss: what is untested can be told from more rounds than there are."""
    found = untested(result)
    if worst_outcome(result) != "untested" or not found:
        return False
    return all(rounds_for(check.name) > result.rounds for check in found)


def rounds_for(name: str) -> int:
    """From how many rounds on this check can be made; 0: from the first."""
    check = _registered(name)
    return check.rounds if isinstance(check, CaseCheck) else 0


def _need_rounds(checks: Sequence[Check]) -> str:
    """`2 need more rounds (autocorrelated: 20)`."""
    least = ", ".join(f"{name}: {rounds_for(name)}" for name in dict.fromkeys(check.name for check in checks))
    return f"{len(checks)} need{'s' if len(checks) == 1 else ''} more rounds ({least})"


def _whose(checks: Sequence[Check]) -> Iterator[str]:
    """Each check once, with its variant where it is about one alone."""
    for name in dict.fromkeys(check.name for check in checks):
        variants = [check.variant for check in checks if check.name == name and check.variant]
        about = f" for {variants[0]}" if len(variants) == 1 else f" for {len(variants)} variants" if variants else ""
        yield f"{name}{about}"


def worst_outcome(result: Result) -> CheckOutcome:
    """`passed` only where every check was made and passed: what the mark beside the summary may be green for."""
    found = {check.outcome for check in result.certificate.checks}
    return "failed" if "failed" in found else "passed" if found == {"passed"} else "untested"


def trouble(result: Result) -> tuple[str, ...]:
    """What stands between this result and its verdicts: failures, and each failed check once."""
    lines = list(failures(result))
    found = failed(result)
    for name in dict.fromkeys(check.name for check in found):
        first, *others = (check for check in found if check.name == name)
        also = figures.listed([check.variant for check in others if check.variant])
        words = [check_line(first), f"It failed for {also} too." if also else "", _what_to_do(name, result)]
        lines.append(" ".join(filter(None, words)))
    return tuple(lines)


def _registered(name: str) -> ValidityCheck | None:
    """The check of this name; None of one that only an older or a newer version has."""
    return next((check for check in validity_checks() if check.name == name), None)


def _what_to_do(name: str, result: Result) -> str:
    """What the registry says to do where this check fails; empty where the disturbed rounds' own line says it."""
    check = _registered(name)
    if check is None or (name in noise.ADVICE and (result.noisy or noise.advises(result))):
        return ""
    said = remedy_for(check, result.fingerprint)
    return f"What to do: {said}." if said else ""


def check_line(check: Check) -> str:
    """One check with its reading, as in `parity (jax/jit): READING. Required: THRESHOLD.`."""
    about = f" ({check.variant})" if check.variant else ""
    threshold = f". Required: {check.threshold}." if check.threshold else ""
    return f"{check.name}{about}: {check.reading}{threshold}"


def failures(result: Result) -> tuple[str, ...]:
    """What became of each variant that failed: reason, place and message."""
    lines = []
    for variant in result.variants:
        if (failure := variant.failure) is not None:
            phase = f", phase {failure.phase}" if failure.phase else ""
            lines.append(f"{variant.name} failed in round {failure.round}{phase} ({failure.reason}): {failure.message}")
    return tuple(lines)
