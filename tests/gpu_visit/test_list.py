"""The list of what visits measure can be used as it stands, and results go where readers look for them."""

import json
import shutil
from pathlib import Path

from gpu_visit import items, publish
from gpu_visit.attempts import Setting
from gpu_visit.items import Measurement, question

H100 = Setting(device="NVIDIA H100 80GB HBM3", jax="0.11.2", torch="2.11.0")
ANOTHER = Setting(device="Another GPU", jax="0.11.2", torch="2.11.0")


def test_every_item_of_the_list_can_be_attempted() -> None:
    listed = items.load()
    assert len(listed) > 20
    assert {type(item).__name__ for item in listed} == {"Measurement", "ProgramRun", "Check"}


def test_variants_that_no_visit_has_checked_come_before_those_that_one_has() -> None:
    checked = publish.checked_on(H100)
    assert len(checked) >= 158
    order = [str(item.asked) in checked for item in items.load(checked=checked) if isinstance(item, items.Check)]
    assert order == sorted(order)
    assert publish.checked_on(ANOTHER) == frozenset()


def test_limits_do_not_identify_a_task() -> None:
    measured = next(item for item in items.load() if isinstance(item, Measurement))
    spec = measured.run.spec
    longer = spec.measurement.model_copy(update={"time_limit_seconds": 11})
    other = spec.measurement.model_copy(update={"seed": 11})
    assert question(measured.run.model_copy(update={"spec": spec.model_copy(update={"measurement": longer})})) == (
        measured.task.question
    )
    assert question(measured.run.model_copy(update={"spec": spec.model_copy(update={"measurement": other})})) != (
        measured.task.question
    )


def test_results_of_claims_stay_out_of_their_page_if_that_is_about_another_device(tmp_path: Path) -> None:
    measured = [item for item in items.load() if isinstance(item, Measurement)]
    claim = next(item for item in measured if item.manifest.startswith(items.CLAIMS))
    name = Path(claim.manifest).stem
    own, other = tmp_path / "claims" / "gpu" / name, tmp_path / "gpu" / "another-gpu" / "claims" / "gpu" / name
    assert publish.directory_of(claim, ANOTHER, tmp_path) == own
    shutil.copytree(publish.RESULTS / "claims" / "gpu", tmp_path / "claims" / "gpu")
    assert publish.directory_of(claim, ANOTHER, tmp_path) == other
    [device] = {
        json.loads(path.read_text())["fingerprint"]["device.name"]
        for path in tmp_path.glob("claims/gpu/*/*.result.json")
    }
    assert publish.directory_of(claim, H100.model_copy(update={"device": device}), tmp_path) == own
