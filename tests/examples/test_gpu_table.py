"""The honest table's manifests have the variants that readers compare, each as its community runs it."""

from pathlib import Path

import pytest

from accelbench.local.manifests import read
from gpu_visit import items

ROOT = Path(__file__).parents[2]
TABLE = sorted((ROOT / "examples" / "gpu-table").glob("*.yaml"))


@pytest.mark.parametrize("path", TABLE, ids=lambda path: path.name)
def test_each_model_of_the_table_is_measured_in_bfloat16_under_every_compiler(path: Path) -> None:
    [run] = read(str(path))
    assert run.spec.measurement.precision == "bfloat16"
    assert [variant.label for variant in run.spec.variants] == [
        "eager",
        "compile",
        "compile-cuda-graphs",
        "max-autotune",
        "jit",
    ]
    modes = {variant.label: variant.options.get("mode") for variant in run.spec.variants}
    assert modes["compile-cuda-graphs"] == "reduce-overhead"
    assert modes["max-autotune"] == "max-autotune"
    header = [line for line in path.read_text().splitlines() if line.startswith("#")]
    assert f"#   accelbench run examples/gpu-table/{path.name}" in header
    assert f"#   kubectl apply -f examples/gpu-table/{path.name}" in header


def test_visits_measure_the_whole_table_before_anything_else() -> None:
    cells = {
        (f"examples/gpu-table/{path.name}", variant.label)
        for path in TABLE
        for variant in read(str(path))[0].spec.variants
    }
    first = items.load()[: len(cells)]
    assert {(item.manifest, item.variant) for item in first if isinstance(item, items.Measurement)} == cells
