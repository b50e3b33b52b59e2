"""Random outputs: compared by moments of their distribution, or by their shapes alone."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from accelbench.catalogue import script
from accelbench.launch.record import ParityReading
from accelbench.validity import parity
from accelbench_runner.judge.moments import (
    MAXIMUM_ELEMENTS,
    RUNS,
    choose_elements,
    compare_moments,
    estimate_distribution,
)
from accelbench_runner.judge.parity import read_parity
from accelbench_runner.judge_protocol import JudgeRequest
from judge.launches import a_case, a_launch

N = 4000
X = np.random.default_rng(0).standard_normal(N)
Draw = Callable[[np.random.Generator], np.ndarray]
RIGHT: dict[str, Draw] = {
    "normal": lambda rng: rng.standard_normal(N),
    "heavy tails": lambda rng: rng.standard_cauchy(N),
    "truths": lambda rng: rng.random(N) < 0.05,
    "integers": lambda rng: rng.integers(0, 10, N),
    "dropout": lambda rng: X * (rng.random(N) < 0.9) / 0.9,
    "batch": lambda rng: rng.standard_normal((8, 500)),
    "dropout of few rows": lambda rng: np.abs(X).reshape(80, 50) * (rng.random((80, 1)) < 0.9),
    "dropout of rows": lambda rng: np.abs(X).reshape(400, 10) * (rng.random((400, 1)) < 0.5),
}


def ratio(right: Draw, other: Draw, seed: int) -> float:
    rng = np.random.default_rng(seed)
    expected = estimate_distribution([choose_elements(right(rng)) for _ in range(RUNS)], (N,))
    comparison = compare_moments("y", np.asarray(other(rng)), expected)
    assert comparison.compared
    return comparison.ratio


@pytest.mark.parametrize("name", RIGHT)
def test_another_draw_of_the_same_distribution_passes(name: str) -> None:
    assert max(ratio(RIGHT[name], RIGHT[name], seed) for seed in range(20)) <= 1


@pytest.mark.parametrize("name", ["normal", "dropout"])
def test_a_rounded_draw_passes(name: str) -> None:
    draw = RIGHT[name]
    assert ratio(draw, lambda rng: draw(rng).astype(np.float32), 1) <= 1


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("normal", lambda rng: 0.2 + rng.standard_normal(N)),
        ("normal", lambda rng: 1.2 * rng.standard_normal(N)),
        ("normal", lambda rng: (rng.random(N) - 0.5) * 12**0.5),
        ("normal", lambda _rng: np.zeros(N)),
        ("heavy tails", lambda rng: 1.5 * rng.standard_cauchy(N)),
        ("truths", lambda rng: rng.random(N) < 0.1),
        ("integers", lambda rng: rng.integers(0, 9, N)),
        ("dropout", lambda rng: X * (rng.random(N) < 0.7) / 0.7),
        ("dropout", lambda rng: X[::-1] * (rng.random(N) < 0.9) / 0.9),
        ("batch", lambda rng: np.tile(rng.standard_normal(500), (8, 1))),
        ("dropout of rows", lambda rng: np.abs(X).reshape(400, 10) * (rng.random((400, 10)) < 0.5)),
    ],
)
def test_another_distribution_fails(name: str, wrong: Draw) -> None:
    assert min(ratio(RIGHT[name], wrong, seed) for seed in range(5)) > 1


def test_noise_that_the_rows_of_a_large_output_share_fails() -> None:
    right: Draw = lambda rng: rng.standard_normal((4, MAXIMUM_ELEMENTS // 2))  # noqa: E731
    assert ratio(right, right, 1) <= 1
    assert ratio(right, lambda rng: np.tile(rng.standard_normal(MAXIMUM_ELEMENTS // 2), (4, 1)), 1) > 1


@pytest.mark.parametrize(
    "draw", [lambda rng: rng.standard_normal(1), lambda rng: np.linspace(0, 1, N) * rng.standard_normal()]
)
def test_a_draw_without_a_recognisable_distribution_is_not_compared(draw: Draw) -> None:
    rng = np.random.default_rng(0)
    expected = estimate_distribution([choose_elements(draw(rng)) for _ in range(RUNS)], (1,))
    assert not compare_moments("y", draw(rng), expected).compared


FUNCTIONS = """
measure = {"random": "moments"}

def arrays(rng):
    return {"x": rng.standard_normal(4000)}

def jax(x):
    raise AssertionError("the baseline alone says what is right")

def numpy(x):
    import numpy as np

    return {"y": x + np.random.default_rng().standard_normal(x.shape)}
"""


def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, outputs: dict[str, np.ndarray]) -> ParityReading:
    path = tmp_path / "noise.py"
    path.write_text(text)
    monkeypatch.setenv(script.SCRIPT_VARIABLE, str(path))
    case = a_case("numpy/eager", "jax/jit").model_copy(update={"workload": "noise", "parameters": {}})
    np.savez(tmp_path / "outputs.npz", **outputs)
    request = JudgeRequest(
        case=case,
        launches=(a_launch(facts={"parityUnits": 2}),),
        outputs={"1/jax/jit": str(tmp_path)},
        directory=str(tmp_path),
    )
    return read_parity(request)["1/jax/jit"]


def drawn(standard_deviation: float) -> dict[str, np.ndarray]:
    x = np.random.default_rng(0).standard_normal(4000)
    return {"y": x + standard_deviation * np.random.default_rng(9).standard_normal(4000)}


def outcome(reading: ParityReading) -> str:
    return parity.CHECK.evaluate(a_case("numpy/eager", "jax/jit"), a_launch(parity=reading)).outcome


def test_declared_random_outputs_pass_by_their_moments_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = read(tmp_path, monkeypatch, FUNCTIONS, drawn(1.0))
    assert outcome(right) == "passed"
    assert right.detail.startswith("random outputs, compared by moments: the ")
    assert outcome(read(tmp_path, monkeypatch, FUNCTIONS, drawn(1.5))) == "failed"
    assert outcome(read(tmp_path, monkeypatch, FUNCTIONS, {"z": np.zeros(4000)})) == "failed"


def test_outputs_that_are_compared_by_shape_alone_are_untested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = FUNCTIONS.replace("moments", "shapes")
    found = read(tmp_path, monkeypatch, text, {"y": np.zeros(4000)})
    assert (outcome(found), found.compared) == ("untested", False)
    assert found.detail.startswith("the values are random, as the workload declares")
    assert outcome(read(tmp_path, monkeypatch, text, {"y": np.zeros(3)})) == "failed"
