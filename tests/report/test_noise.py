"""What other load did is said once, with what to do; a noisy result says so wherever it is shown."""

import io

import pytest
from rich.console import Console

from accelbench.api.result import Quarantined, Result
from accelbench.report import html, terminal, view
from report import sample

BUSY = f"shared-device of jax/jit: {sample.CROWDED}"
STOLEN = "throttled for jax/jit: Hypervisor steal: 7 % (limit 5 %)"


def quarantined(*reasons: str, **changes: object) -> Result:
    rounds = tuple(Quarantined(round=number, reasons=(reason,)) for number, reason in enumerate(reasons, start=2))
    decided = sample.comparison("jax/jit", "faster", "2", "1.9", "2.1")
    return sample.result(quarantined=rounds, **{"comparisons": (decided,), **changes})


@pytest.mark.parametrize(
    ("used", "there", "advised"),
    [("2", "2", True), ("1", "2", False), ("4", "8", False), ("1", "1", False)],
    ids=["all", "one of two", "some", "the only one"],
)
def test_fewer_processors_are_advised_only_where_launches_use_all_of_several(
    used: str, there: str, advised: bool
) -> None:
    result = quarantined(
        BUSY,
        comparisons=(sample.invalid("jax/jit", "shared-device"),),
        fingerprint={**sample.FINGERPRINT, "cpusUsed": used, "cpus": there},
    )
    assert view.remarks(result)[1].startswith("What to do: end the other work")
    assert ("--processors" in view.remarks(result)[1]) is advised


def printed(result: Result) -> str:
    out = io.StringIO()
    Console(file=out, width=120).print(terminal.report(result))
    return out.getvalue()


def test_noisy_cases_and_variants_are_counted_as_noisy() -> None:
    several = html.overview_sentences([sample.noisy(), sample.noisy()])
    assert several == ("4 comparisons in 2 cases: 4 noisy.",)
    (noisy, _) = sample.noisy().comparisons
    uses = ("pytorch/nn", "a/a", "b/b", "c/c", "d/d")
    many = sample.noisy().model_copy(
        update={
            "case": sample.case(uses),
            "variants": tuple(sample.variant(use, "0.001") for use in uses),
            "comparisons": tuple(noisy.model_copy(update={"variant": use}) for use in uses[1:]),
        }
    )
    assert view.sentences(many)[1] == "Of 4 variants against pytorch/eager: 4 noisy."


def test_the_headline_says_noisy() -> None:
    assert sample.noisy().headline.startswith("jax/jit noisy 2.04x (1.51 to 2.77); jax/op-by-op noisy")
    assert not sample.noisy().valid
