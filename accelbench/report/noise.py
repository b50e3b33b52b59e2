"""What other load did to a case, said once, and what to do about it. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from accelbench.api.reasons import StopReason
from accelbench.api.result import Disturbed, Result
from accelbench.validity import shared_device, throttled

ADVICE = {check.name: check.advice for check in (shared_device.CHECK, throttled.CHECK)}
ACCEPT = "accept noise: --accept-noise, or measurement.acceptNoise: true in the manifest"
MORE_TIME = "allow more time (measurement.timeLimitSeconds), in which to repeat rounds"


def what_to_do(reasons: Iterable[str], fingerprint: Mapping[str, str], *others: str) -> str:
    """Advice against what disturbed a round, by the checks that `reasons` begin with; and `others`."""
    names = {reason.partition(" ")[0] for reason in reasons}
    against = (advice(fingerprint) for name, advice in ADVICE.items() if name in names)
    return f"What to do: {'; '.join([*against, *others, f'or {ACCEPT}'])}."


def disturbed(result: Result) -> tuple[str, ...]:
    """The disturbed rounds in a line; where rounds were discarded and no verdict is left, a second one with advice.

    Why is said here of rounds that do not count; of those that do, the checks that they failed say it.
    """
    lines = []
    if result.noisy:
        lines.append(f"{_rounds(result.noisy)} disturbed and counted, as noise was accepted.")
    if result.quarantined:
        counts = any(check.name in ADVICE for check in result.certificate.checks if check.outcome == "failed")
        why = "" if counts else f" {_first(result.quarantined)}"
        lines.append(f"{_rounds(result.quarantined)} discarded for every variant.{why}")
        if advises(result):
            reasons = [reason for each in result.quarantined for reason in each.reasons]
            others = [MORE_TIME] if result.stopped == StopReason.TIME_LIMIT_REACHED else []
            lines.append(what_to_do(reasons, result.fingerprint, *others))
    return tuple(lines)


def advises(result: Result) -> bool:
    """Whether disturbed rounds were discarded, and so no verdict is left, or there was no time for one."""
    return bool(result.quarantined) and (result.stopped == StopReason.TIME_LIMIT_REACHED or not result.valid)


def _rounds(found: Sequence[Disturbed]) -> str:
    *others, last = [str(each.round) for each in found]
    return f"Rounds {', '.join(others)} and {last} were" if others else f"Round {last} was"


def _first(found: Sequence[Disturbed]) -> str:
    in_round = f" in round {found[0].round}" if len(found) > 1 else ""
    return f"The reason{in_round}: {found[0].reasons[0]}."
