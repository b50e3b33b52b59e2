"""Test runs without a manifest: a workload of the catalogue, or a script."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from accelbench.local.directory import RunDirectory
from accelbench.local.errors import InvalidSpecError, UsageError
from accelbench.local.manifests import read_target
from accelbench.workload import Workload, variant
from cli.command import ROOT, accelbench

SCRIPT = str(ROOT / "examples" / "softmax_rows.py")


def uses(target: str, *variants: str) -> list[str]:
    [run] = read_target(target, variants)
    return [variant.use for variant in run.spec.variants]


def test_a_workload_is_measured_by_its_name() -> None:
    [run] = read_target("matmul-chain", (), ("size=32", "measurement.rounds.max=7", "series=mine"))
    assert run.spec.workload.parameters == {"size": 32}
    assert (run.metadata.name, run.series, run.spec.measurement.rounds.max) == ("matmul-chain", "mine", 7)
    assert uses("matmul-chain") == ["pytorch/eager", "jax/jit"]


def test_the_first_requested_variant_is_the_baseline() -> None:
    [run] = read_target("matmul-chain", ("jax/jit", "numpy/eager"))
    assert (run.baseline, uses("matmul-chain", "jax/jit", "numpy/eager")) == ("jax/jit", ["jax/jit", "numpy/eager"])


def test_a_script_is_measured_as_it_is() -> None:
    [run] = read_target(SCRIPT, ("pytorch/eager",), ("rows=8",))
    assert run.spec.workload.script is not None
    assert run.spec.workload.script.file == "softmax_rows.py"
    assert run.spec.workload.parameters == {"rows": 8}


def test_a_parameter_that_a_manifest_sets_is_changed_by_its_name_alone(tmp_path: Path) -> None:
    example = str(ROOT / "examples" / "01-matmul-chain.yaml")
    [run] = read_target(example, (), ("size=8",))
    assert run.spec.workload.parameters == {"size": 8, "length": 100}


def test_a_class_that_inherits_its_modes_is_compared_in_one_mode_of_each_framework() -> None:
    class Inherits(Workload):
        @variant("jax/by-hand")
        def by_hand(self) -> None:
            """Compute the same by hand, as a variant of its own."""

    class Chooses(Workload):
        modes: ClassVar[Mapping[str, tuple[str, ...]]] = {"jax": ("jit", "op-by-op")}

    assert Inherits.default_uses() == ("jax/jit", "pytorch/eager", "jax/by-hand")
    assert Chooses.default_uses() == ("jax/jit", "jax/op-by-op")


def test_a_file_is_preferred_to_a_workload_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("matmul-chain").write_text((ROOT / "examples" / "02-elementwise-fusion.yaml").read_text())
    [run] = read_target("matmul-chain")
    assert run.metadata.name == "elementwise-fusion"


@pytest.mark.parametrize(
    ("target", "variants", "assignments", "what"),
    [
        ("matmul-chian", (), (), "no workload has this name; did you mean matmul-chain?"),
        ("matmul-chian", ("jax/jit",), (), "no workload has this name; did you mean matmul-chain?"),
        ("matmul_chain", (), (), "no workload has this name; did you mean matmul-chain?"),
        ("matmul-chain", (), ("siez=3",), "size?"),
        ("matmul-chain", (), ("measurement.round.max=3",), "measurement.rounds.max?"),
        (str(ROOT / "examples" / "01-matmul-chain.yaml"), ("jax/jit",), (), "a manifest lists its variants itself"),
    ],
)
def test_a_wrong_command_line_is_refused_with_the_remedy(
    target: str, variants: tuple[str, ...], assignments: tuple[str, ...], what: str
) -> None:
    with pytest.raises(UsageError) as raised:
        read_target(target, variants, assignments)
    assert what in str(raised.value)


@pytest.mark.parametrize(
    ("variants", "assignments", "what"),
    [
        (("jax/jti",), (), "jit?"),
        (("jax/jit", "jax/jit"), (), 'two variants are called "jax/jit"'),
        ((), ("size=-3",), "-3 is too small"),
    ],
)
def test_a_command_line_is_refused_for_the_same_reasons_as_a_manifest(
    variants: tuple[str, ...], assignments: tuple[str, ...], what: str
) -> None:
    with pytest.raises(InvalidSpecError) as raised:
        read_target("matmul-chain", variants, assignments)
    assert what in raised.value.explanation()


def test_a_workload_and_a_script_run_from_the_command_line(tmp_path: Path) -> None:
    for out, target, uses in [
        ("named", ("matmul-chain", "--set", "size=64", "--set", "length=4"), ("numpy/eager", "pytorch/eager")),
        ("script", (SCRIPT, "--set", "rows=64"), ("pytorch/eager", "jax/jit")),
    ]:
        variants = [word for use in uses for word in ("--variant", use)]
        done = accelbench("run", *target, *variants, "--out", out, cwd=tmp_path, play="good")
        _, [result] = RunDirectory(tmp_path / out).load()
        assert result.complete, done.stderr
        assert [variant.use for variant in result.variants] == list(uses)
        assert result.case.baseline == uses[0]
