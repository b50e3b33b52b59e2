"""Accelbench's own probes hang and crash inside real launches: the variants have their results, checks say why not."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from golden.defects import HONEST
from golden.experiment import BASELINE, VARIANT, case, in_processes, records

SECONDS = 3.0
"""A probe that answers takes no time here."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "limits"), [("hangs", "product"), pytest.param("crashes", "triad", marks=pytest.mark.nightly)]
)
def test_variants_with_failed_probes_are_measured_and_the_missing_facts_are_not_checked(
    does: Literal["hangs", "crashes"], limits: Literal["product", "triad"], tmp_path: Path
) -> None:
    honest = replace(HONEST[VARIANT], compile_seconds=0.0)  # so that nothing is probed warm
    truths = {
        BASELINE: replace(honest, call_seconds=0.0125),
        "late": replace(honest, probe="late work", probe_does=does),
        "limits": replace(honest, probe=limits, probe_does=does),
        "watch": replace(honest, probe="watch", probe_does=does),
    }
    asked = case("late", "limits", "watch", rounds_min=2, rounds_max=2, time_limit_seconds=280)
    result = in_processes(asked, truths, tmp_path, probe_seconds=SECONDS if does == "hangs" else 60.0)
    assert result.complete
    assert result.rounds == 2
    assert {variant.name: (variant.failure, len(variant.launches)) for variant in result.variants} == dict.fromkeys(
        truths, (None, 2)
    )
    assert [comparison.verdict for comparison in result.comparisons] == ["faster"] * 3
    how = f"did not finish within {SECONDS:g} s" if does == "hangs" else "crashed (SIGSEGV)"
    readings = {(check.name, check.variant): (check.outcome, check.reading) for check in result.certificate.checks}
    for check, variant, probe in (("unsynchronised", "late", "synchronisation"), ("throttled", "watch", "watch")):
        outcome, reading = readings[check, variant]
        assert outcome == "untested"
        assert f"accelbench's own probe `{probe}` {how} in round 1" in reading
    unchecked = [launch.unchecked for launch in records(tmp_path) if launch.variant == "limits"]
    assert all(told["limits"] == f"accelbench's own probe `limits` {how} in round 1" for told in unchecked)
