"""Work that was promised and not done, or done and not waited for, in real launches.

The launches measure what they can; it is the checks that must not let them through.
"""

from pathlib import Path
from typing import Any

import pytest

from accelbench.api.result import Check
from accelbench.launch.record import Block, LaunchRecord, ParityReading
from accelbench.validity.certificate import certify
from accelbench.validity.evidence import Evidence
from launch.launching import Told, case, launch


def check(name: str, use: str, told: Told, workload: str, **unread: Any) -> Check:
    """What the check makes of the launch; `unread` stands for facts that it did not report."""
    assert told.failure is None, told.failure
    blocks = tuple(Block(units=block.units, seconds=block.seconds) for block in told.blocks)
    parity = ParityReading(units=1, finite=True, worst_ratio=0, worst_array="x", detail="")
    facts = {**unread, **told.facts}
    first = LaunchRecord(variant=use, round=1, position=0, wall_seconds=1, blocks=blocks, facts=facts, parity=parity)
    alike = (first, first.model_copy(update={"round": 2}))
    certificate = certify(Evidence(case=case(workload, use), launches=alike))
    return next(each for each in certificate.checks if each.name == name)


@pytest.mark.parametrize("use", ["jax/not-returned", "pytorch/thread"])
def test_work_that_goes_on_when_the_step_has_returned_is_noticed(use: str, tmp_path: Path) -> None:
    found = check("unsynchronised", use, launch(tmp_path, case("escaping", use), threads=2, number=1), "escaping")
    assert found.outcome == "failed", found.reading
    assert "busy for" in found.reading


def test_a_product_that_nobody_needs_is_quicker_than_the_processor(tmp_path: Path) -> None:
    told = launch(tmp_path, case("boasting", "jax/jit"))
    # Beside neighbours a launch measures no limits, because it would find them too low.
    generous = {"flops_per_second": 5e11, "bytes_per_second": 1e12}  # twice what a core of today reaches
    found = check("impossible-speed", "jax/jit", told, "boasting", limits=generous)
    assert found.outcome == "failed", found.reading
    assert "skips work" in found.reading
