"""Every variant computes what the float64 reference says, in every precision a CPU has; what is wrong is caught."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from accelbench import catalogue, frameworks
from accelbench.api.case import Precision
from accelbench.catalogue import inputs
from accelbench.launch.fact import value_or_none
from accelbench.launch.facts import Dependence, Facts
from accelbench.launch.record import LaunchRecord, ParityReading, UnseenReading
from accelbench.validity import depends_on_inputs, formula, gradients, parity, precision, work_present, work_skipped
from accelbench.validity.evidence import Evidence
from accelbench_runner.judge.arithmetic import NARROW, round_arrays
from accelbench_runner.judge.canonical import CanonicalForm, CanonicalProgram
from accelbench_runner.judge.layout import read_outputs
from accelbench_runner.judge.parity import compare, is_within_tolerance
from accelbench_runner.judge.reference import RawOutputs, Reference, leaves_state_unchanged
from accelbench_runner.judge.reference import compute as compute_reference
from accelbench_runner.judge.reference_program import NumpyProgram
from accelbench_runner.outputs import UNSEEN
from launch.launching import case
from tiers import on_a_push
from workloads.computing import UNSEEN_SEED, Asked, find
from workloads.small import SMALL

pytestmark = pytest.mark.slow

PRECISIONS: list[Precision] = ["float64", "float32", "bfloat16", "float16"]
OTHER_LAYOUT = {"pytorch_channels_last/compile", "pytorch_fused/compile"}
"""What is compiled of these is compiled of others too."""
SLOW = {"pytorch/compile", "pytorch/compile-step", "jax/op-by-op"} | OTHER_LAYOUT
"""A C++ compiler is at work for seconds, or every operation is compiled: the first of the parameters has to do."""
TWO_PROGRAMS = {
    *(("vit", "pytorch/compile"), ("vit", "pytorch/compile-step")),
    *(
        ("hessian", "pytorch/compile"),
        ("composed-gradients", "pytorch/compile"),
        ("inference-latency", "pytorch/compile"),
    ),
}
"""But for these, whose other parameters are other programs."""
SUMS_ALONE = {"jax/jit-cumsum", "pytorch/cumsum", "pytorch/compile-cumsum"}
"""There is no cumsum of sines."""
IMAGES_ALONE = {
    ("inference-latency", "pytorch_channels_last/eager"),
    ("inference-latency", "pytorch_channels_last/compile"),
}
"""A decoder has no images."""
OBSERVED_ALONE = {
    *("jax/state-not-returned", "pytorch/from-jax-as-published"),
    *("jax/diffrax-adaptive", "pytorch/torchdiffeq-adaptive"),
}
"""There is nothing to time."""
OF_NO_OPERATION = {
    *("jax/orbax", "jax/orbax-parameters-only", "pytorch/aoti"),
    *("jax/from-torch", "pytorch/from-jax"),
}
"""They run nothing that their framework counts."""
BY_NUMPY = {"numpy/eager", "jax/copied-from-torch", "pytorch/copied-from-jax"}
"""NumPy has no bfloat16."""
SCIENCE = ("heat-equation", "lennard-jones", "cartpole-rollout", "neural-ode", "photometric-stereo")
"""Differential equations: nobody solves them in narrow types, in which the step is lost in the value."""
REFUSED = {
    ("transformer-lm", "float16"),
    *((workload, precision) for workload in (*SCIENCE, "keras-mlp", "quantized-linear") for precision in NARROW),
}
"""Types that a workload has no room in."""
NO_FLOAT64 = {"pytorch/keras-module", "pytorch/keras-fit", "pytorch_torchao/eager", "pytorch_torchao/compile"}
"""On PyTorch, Keras casts the operands of products to float32; torchao refuses float64."""
ALL = [
    Asked(workload=workload, use=use, precision=precision, parameters=parameters)
    for workload in catalogue.names()
    if catalogue.find(workload).measure(catalogue.find(workload).Parameters()).protocol != "observe"
    for parameters in SMALL[workload]
    for use in catalogue.find(workload).variants()
    for precision in PRECISIONS
    if parameters is SMALL[workload][0] or use not in SLOW or (workload, use) in TWO_PROGRAMS
    if precision != "bfloat16" or use not in BY_NUMPY
    if use not in SUMS_ALONE or ("body", "sine") not in parameters
    if (workload, use) not in IMAGES_ALONE or ("model", "decoder") not in parameters
    if use not in OBSERVED_ALONE
    if (use, precision) not in {(each, "float64") for each in NO_FLOAT64}
    if (workload, precision) not in REFUSED
]
IN_ONE_GRAPH = {"per-example-gradients", "vmap", "hessian", "joint-gradient", "composed-gradients"}
"""Inductor takes 20 s for each of their programs: on a push their graphs are traced, and run without it."""
TRACED = [
    Asked(workload=workload, use=use, precision="float32", parameters=parameters, backend="aot_eager")
    for workload in sorted(IN_ONE_GRAPH)
    for parameters in SMALL[workload]
    for use in catalogue.find(workload).variants()
    if use.startswith("pytorch/compile")
]
WRONG = {
    "WrongAxis": ("jax/jit", SMALL["matmul-chain"][0]),
    "WrongOrder": ("jax/jit", SMALL["matmul-chain"][0]),
    "WrongWeights": ("jax/jit-step", SMALL["xor"][0]),
    "WrongReduction": ("jax/jit-step", SMALL["xor"][0]),
    "WrongSamples": ("jax/jit-step", SMALL["xor"][0]),
    "WrongFunction": ("jax/jit", SMALL["elementwise-fusion"][0]),
    "WrongCoefficient": ("jax/jit", SMALL["dispatch-overhead"][0]),
    "AlwaysTheFirst": ("jax/jit", SMALL["dispatch-overhead"][1]),
    "WrongOrderOfUnits": ("pytorch/eager", SMALL["mlp"][0]),
    "LostAxis": ("jax/jit", SMALL["mlp"][0]),
    "SummedLoss": ("pytorch/eager", (("outputs", 3), ("learning_rate", 0.1))),
    "OtherWindow": ("jax/jit", SMALL["mlp"][1]),
    "SumOfSquares": ("jax/jit", SMALL["linear-regression"][0]),
    "LostColumn": ("pytorch/eager", SMALL["linear-regression"][0]),
    "SampleVariance": ("pytorch/eager", SMALL["layer-norm"][0]),
    "OverRows": ("jax/jit", SMALL["layer-norm"][0]),
    "OverTheQuery": ("jax/jit", SMALL["maxsim"][0]),
    "ExclusiveSums": ("jax/jit-cumsum", SMALL["loop-unrolling"][0]),
    "TheOldArray": ("pytorch/in-place", SMALL["inplace-update"][0]),
    "NoBiasCorrection": ("jax/jit", SMALL["optimizer-step"][0]),
    "OtherEpoch": ("pytorch/fused", SMALL["optimizer-step"][0]),
    "ByPlace": ("pytorch/eager", SMALL["cifar-cnn"][0]),
    "AveragePool": ("jax/jit", SMALL["cifar-cnn"][0]),
    "NoMomentum": ("pytorch/eager", SMALL["resnet"][0]),
    "OneMoreFrozen": ("jax/jit-trained-only", SMALL["freeze-layers"][0]),
    "NothingFrozen": ("pytorch/eager", SMALL["freeze-layers"][0]),
    "LostSine": ("jax/jit-fori", SMALL["loop-unrolling"][1]),
    "LostRest": ("jax/jit-checkpoint-scanned", SMALL["activation-checkpointing"][0]),
    "LostSegment": ("jax/jit-checkpoint", SMALL["activation-checkpointing"][0]),
    "HeadsMixedUp": ("pytorch/eager", SMALL["vit"][0]),
    "PatchesTransposed": ("jax/jit", SMALL["vit"][0]),
    "SummedOverImages": ("pytorch/eager", SMALL["vit"][1]),
    "FrozenPositions": ("jax/jit", SMALL["vit"][1]),
    "NotCausal": ("pytorch/eager", SMALL["transformer-lm"][0]),
    "FewerHeads": ("jax/jit", SMALL["transformer-lm"][0]),
    "ItsOwnWord": ("jax/jit-scanned", SMALL["transformer-lm"][1]),
    "OnePlaceLater": ("jax/jit", SMALL["text-generation"][0]),
    "UnwrittenAttendedTo": ("pytorch/eager", SMALL["text-generation"][0]),
    "PaddingAttendedTo": ("jax/jit-padded", SMALL["variable-length"][0]),
    "UnscaledLoss": ("pytorch/eager", SMALL["mixed-precision"][0]),
    "OnePlaceAlone": ("jax/jit", SMALL["inference-latency"][1]),
    "KernelsMirrored": ("pytorch/eager", SMALL["inference-latency"][0]),
    "FourBits": ("jax/jit", SMALL["quantized-linear"][0]),
    "LayerLost": ("jax/export", SMALL["export"][0]),
    "AlwaysTheFirstBatch": ("jax/jit", SMALL["keras-mlp"][0]),
    "MomentsLost": ("pytorch/save", SMALL["checkpoint"][0]),
}
WRONG_SCIENCE = {
    "EdgesJoined": ("jax_roll/jit", SMALL["heat-equation"][0]),
    "NeighboursOfThisStep": ("pytorch/eager", SMALL["heat-equation"][0]),
    "MerelyCutOff": ("jax/jit", SMALL["lennard-jones"][0]),
    "OneKick": ("pytorch/eager", SMALL["lennard-jones"][0]),
    "NeverAnew": ("jax/scan", SMALL["cartpole-rollout"][0]),
    "SemiImplicit": ("numpy/eager", SMALL["cartpole-rollout"][0]),
    "NoShadows": ("jax/jit", SMALL["photometric-stereo"][0]),
    "LargerError": ("numpy/scipy", SMALL["photometric-stereo"][0]),
    "OneStepFewer": ("pytorch/eager", SMALL["neural-ode"][0]),
    "HalfTheTime": ("jax/jit", SMALL["neural-ode"][1]),
}
WRONG_TRANSFORMS = {
    "SharesOfTheMean": ("jax/jit", SMALL["per-example-gradients"][0]),
    "TransposedWeights": ("pytorch/by-hand", SMALL["per-example-gradients"][0]),
    "OtherParticle": ("jax/jit", SMALL["vmap"][0]),
    "GaussNewton": ("pytorch/by-hand", SMALL["hessian"][0]),
    "HalfTheExamples": ("jax/jit-separate", SMALL["joint-gradient"][0]),
    "FirstOrder": ("jax/jit", SMALL["composed-gradients"][0]),
    "NotRounded": ("pytorch/autograd", SMALL["composed-gradients"][3]),
    "RolledOn": ("pytorch/from-jax", SMALL["dlpack"][0]),
}
WRONG_BY_MODULE = {"mutants": WRONG, "mutants_of_science": WRONG_SCIENCE, "mutants_of_transforms": WRONG_TRANSFORMS}
MUTANTS = [
    Asked(workload=f"workloads.{module}:{mutant}", use=use, precision=precision, parameters=parameters)
    for module, mutants in WRONG_BY_MODULE.items()
    for mutant, (use, parameters) in mutants.items()
    for precision in PRECISIONS
    if (find(f"workloads.{module}:{mutant}").name, precision) not in REFUSED
]


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Asked], Path]]:
    """Has what is asked computed, in a process for each framework that imports no other, and says where it lies."""
    directory = tmp_path_factory.mktemp("computed")
    processes: dict[str, subprocess.Popen[str]] = {}

    with contextlib.ExitStack() as until_the_end:

        def compute(asked: Asked) -> Path:
            if (directory / asked.file).exists():
                return directory / asked.file  # two tests ask for it
            framework = frameworks.name_of(asked.use)
            if framework not in processes:
                processes[framework] = until_the_end.enter_context(
                    subprocess.Popen(
                        [sys.executable, "-m", "workloads.computing", str(directory)],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        text=True,
                        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
                    )
                )
            process = processes[framework]
            assert process.stdin
            assert process.stdout
            print(json.dumps(asdict(asked)), file=process.stdin, flush=True)
            assert any(line.rstrip() == asked.file for line in process.stdout), f"it ended: {process.wait()}"
            if not (directory / asked.file).exists():
                processes.pop(framework).wait()  # it ends after a failure: the next program gets a new one
            return directory / asked.file

        yield compute


def read(asked: Asked, computed: Callable[[Asked], Path]) -> ParityReading:
    workload = find(asked.workload)
    for library in workload.libraries.get(workload.variants()[asked.use].method, ()):
        if workload.extra and not find_spec(library.partition(".")[0]):
            pytest.skip(f"needs accelbench[{workload.extra}], which has {library}")
    file = computed(asked)
    assert not file.with_suffix(".error").exists(), file.with_suffix(".error").read_text()
    with np.load(file) as archive:
        outputs = {name: archive[name] for name in archive.files}
    units = int(outputs.pop("units"))
    right = reference(asked, units)
    return compare(right.to_compared_form(outputs), right, units)


def reference(asked: Asked, units: int, *, other_inputs: bool = False) -> Reference:
    """What is right after so many units, on the inputs that the program was built from or on others."""
    return reference_of(replace(asked, use="", backend=""), units, other_inputs=other_inputs)


@cache
def reference_of(asked: Asked, units: int, *, other_inputs: bool) -> Reference:
    """The same for all variants."""
    workload = find(asked.workload)
    parameters = catalogue.parse_parameters(workload, dict(asked.parameters))
    arrays = inputs.generate(workload, parameters, seed=1)
    if other_inputs:
        arrays = inputs.generate_unseen(workload, parameters, arrays, UNSEEN_SEED)
    start = round_arrays(arrays, asked.precision)
    program = plain = NumpyProgram(partial(workload.reference, parameters))
    form = CanonicalForm(workload, parameters, lambda: start) if workload.has_canonical() else None
    if form is not None:
        program = CanonicalProgram(plain, form)
    expected = compute_reference(program, start, units, asked.precision)
    return Reference(
        expected,
        asked.precision,
        non_finite=workload.measure(parameters).non_finite is not None,
        leaves_state_unchanged=leaves_state_unchanged(start.state, expected),
        form=form,
        raw=RawOutputs({name: np.shape(array) for name, array in plain.exact(start, units).items()}),
    )


def is_for_a_push(asked: Asked) -> bool:
    """Return True for float32, and for bfloat16 unless a C++ compiler would have to compile the same program again.

    Of the science, a push runs no program again that is only compiled in another way, or runs operation by operation.
    """
    is_compiled = "/compile" in asked.use or asked.use.startswith("pytorch/aoti")
    if asked.use in OTHER_LAYOUT:
        return False
    if asked.workload == "resnet" and (is_compiled or asked.use.endswith("/op-by-op")):  # many layers like cifar-cnn's
        return False
    if asked.workload in (*SCIENCE, "export", "quantized-linear") and (is_compiled or asked.use.endswith("/op-by-op")):
        return False
    if asked.use.startswith(("jax_diffrax", "pytorch_torchdiffeq")) and ("work", "train") in asked.parameters:
        return False
    if asked.workload in IN_ONE_GRAPH:
        return asked.precision == "float32" and bool(asked.backend) == is_compiled
    return asked.precision == "float32" or (asked.precision == "bfloat16" and not is_compiled)


@pytest.mark.parametrize("asked", on_a_push([*ALL, *TRACED], is_for_a_push), ids=str)
def test_a_variant_agrees_with_the_reference(asked: Asked, computed: Callable[[Asked], Path]) -> None:
    reading = read(asked, computed)
    assert reading.finite, reading.detail
    assert reading.worst_ratio <= 1, reading.detail


@pytest.mark.parametrize(
    "asked", on_a_push([asked for asked in ALL if asked.precision == "float32"], is_for_a_push), ids=str
)
def test_every_workload_passes_every_check(asked: Asked, computed: Callable[[Asked], Path]) -> None:
    seen = read(asked, computed)
    directory = computed(asked).with_suffix("")
    facts = Facts.model_validate_json((directory / "facts.json").read_text())
    units = (value_or_none(facts.dependence) or Dependence()).units or 0
    right = reference(asked, units, other_inputs=True)
    before = reference(asked, units)
    reading = compare(right.to_compared_form(read_outputs(directory, UNSEEN)), right, units)
    unseen = UnseenReading(reading=reading, changes=not is_within_tolerance(before.values, right))
    record = LaunchRecord(
        variant=asked.use,
        round=1,
        position=0,
        wall_seconds=1.0,
        facts=facts,
        parity=seen.model_copy(update={"unseen": unseen}),
    )
    evidence = Evidence(case=case(asked.workload, asked.use), launches=(record,))
    found = {
        reading.name: reading
        for check in (depends_on_inputs, gradients, parity, precision, work_skipped, work_present)
        for reading in check.CHECK.outcomes(evidence)
    }
    assert not [reading for reading in found.values() if reading.outcome == "failed"], found
    if seen.compared:
        assert found["depends-on-inputs"].outcome == "passed", found
    if asked.use not in OF_NO_OPERATION:
        assert found["work-skipped"].outcome == "passed", found


@pytest.mark.parametrize("asked", on_a_push(MUTANTS, lambda asked: asked.precision == "float32"), ids=str)
def test_a_wrong_computation_is_caught(asked: Asked, computed: Callable[[Asked], Path]) -> None:
    """By its outputs in that precision, or by its formula in float64."""
    reading = read(asked, computed)
    if reading.worst_ratio <= 1 and asked.precision in NARROW:
        reading = read(replace(asked, precision="float64"), computed)
        assert reading.worst_ratio > formula.UNCLEAR_RATIO, reading.detail
    assert reading.worst_ratio > 1, reading.detail


def test_every_workload_that_is_timed_has_a_mutant() -> None:
    assert {find(asked.workload).name for asked in MUTANTS} == {asked.workload for asked in ALL}
