"""Making a result fit its 32 KiB: what is least missed goes first, and the result says what went.

The order: disturbed rounds (a note keeps their number), quantiles inside each launch, then texts at length, then
checks that every variant passed become one each, then single launches (every second one, again and again; the time and
the quantiles over all launches stay), and last of all observed texts. Verdicts, intervals and failed checks are never
touched. Launches go late: without them a result cannot be compared with another.
"""

from collections.abc import Callable

from accelbench.api.observation import ObservedValue
from accelbench.api.result import MAXIMUM_BYTES, Certificate, Check, Result

LISTED = 10
SHORT = 120
VERY_SHORT = 40


def fit(result: Result) -> Result:
    """`result`, reduced no further than it must be; raises ValueError if nothing helps."""
    disturbed = max(len(result.quarantined), len(result.noisy))
    reductions: tuple[tuple[str, Callable[[Result], Result]], ...] = (
        (f"disturbed rounds after the first {LISTED} of {disturbed}", _few_disturbed),
        ("the spread inside each launch", _without_launch_quantiles),
        ("outliers and shares of variance", _without_spread),
        ("the ends of long texts", lambda reduced: _shorten(reduced, SHORT)),
        ("one by one, the checks that all variants passed", _fold_passed_checks),
        ("the ends of texts", lambda reduced: _shorten(reduced, VERY_SHORT)),
        *((f"all but every {2**power}th launch", _every_second_launch) for power in range(1, 7)),
        ("the ends of observed texts", lambda reduced: _shorten_observations(reduced, VERY_SHORT)),
    )
    gone: list[str] = []
    reduced = result
    for what, reduce in reductions:
        if _size(_noted(reduced, gone)) <= MAXIMUM_BYTES:
            break
        if (smaller := reduce(reduced)) == reduced:
            continue
        reduced = smaller
        if what.startswith("all but") and gone and gone[-1].startswith("all but"):
            gone.pop()
        gone.append(what)
    final = _noted(reduced, gone)
    if _size(final) > MAXIMUM_BYTES:
        raise ValueError(f"the result takes {_size(final)} bytes, and can be at most {MAXIMUM_BYTES}")
    return final


def _size(result: Result) -> int:
    return len(result.to_json().encode())


def _noted(result: Result, gone: list[str]) -> Result:
    if not gone:
        return result
    note = f"left out, to fit {MAXIMUM_BYTES // 1024} KiB: {'; '.join(gone)}"
    return result.model_copy(update={"notes": (*result.notes, note)})


def _few_disturbed(result: Result) -> Result:
    return result.model_copy(update={"quarantined": result.quarantined[:LISTED], "noisy": result.noisy[:LISTED]})


def _without_launch_quantiles(result: Result) -> Result:
    return _with_launches(
        result,
        lambda launches: tuple(
            launch.model_copy(update={"p5_seconds": None, "p95_seconds": None}) for launch in launches
        ),
    )


def _without_spread(result: Result) -> Result:
    variants = tuple(variant.model_copy(update={"spread": None}) for variant in result.variants)
    return result.model_copy(update={"variants": variants})


def _every_second_launch(result: Result) -> Result:
    return _with_launches(result, lambda launches: launches[::2])


def _with_launches(result: Result, change: Callable[[tuple], tuple]) -> Result:  # type: ignore[type-arg]
    variants = tuple(variant.model_copy(update={"launches": change(variant.launches)}) for variant in result.variants)
    return result.model_copy(update={"variants": variants})


def _shorten(result: Result, length: int) -> Result:
    def cut(text: str) -> str:
        return text if len(text) <= length else text[: length - 1] + "…"

    checks = tuple(
        check.model_copy(update={"reading": cut(check.reading), "threshold": cut(check.threshold)})
        for check in result.certificate.checks
    )
    variants = tuple(
        variant.model_copy(
            update={"failure": variant.failure.model_copy(update={"message": cut(variant.failure.message)})}
        )
        if variant.failure
        else variant
        for variant in result.variants
    )
    return result.model_copy(
        update={
            "certificate": Certificate(checks=checks),
            "variants": variants,
            "fingerprint": {name: cut(value) for name, value in result.fingerprint.items()},
            "notes": tuple(map(cut, result.notes)),
        }
    )


def _shorten_observations(result: Result, length: int) -> Result:
    """Numbers and truths are short; a text that ends in an ellipsis is no text to hold anything against."""

    def cut(value: ObservedValue) -> ObservedValue:
        text = value.value if len(value.value) <= length else value.value[: length - 1] + "…"
        return value.model_copy(update={"value": text})

    observations = tuple(
        of.model_copy(
            update={
                "found": tuple(
                    found.model_copy(update={"values": tuple(map(cut, found.values))})
                    if found.type == "text"
                    else found
                    for found in of.found
                )
            }
        )
        for of in result.observations
    )
    return result.model_copy(update={"observations": observations})


def _fold_passed_checks(result: Result) -> Result:
    """A check that passed for every variant it was made for is one entry that concerns them all."""
    kept: list[Check] = []
    for check in result.certificate.checks:
        alike = [other for other in result.certificate.checks if other.name == check.name]
        if len(alike) == 1 or any(other.outcome != "passed" for other in alike):
            kept.append(check)
        elif check is alike[0]:
            kept.append(check.model_copy(update={"variant": None, "reading": f"passed for {len(alike)} variants"}))
    return result.model_copy(update={"certificate": Certificate(checks=tuple(kept))})
