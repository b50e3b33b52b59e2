"""Laws of science that references in NumPy obey; parity carries them to every variant."""

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from accelbench import catalogue
from accelbench.catalogue import inputs
from accelbench.workload import Arrays
from accelbench.workloads import _kutta as kutta
from accelbench.workloads import cartpole_rollout as cartpole
from accelbench.workloads import heat_equation as heat
from accelbench.workloads import lennard_jones as atoms
from accelbench.workloads import photometric_stereo as stereo
from launch.inside import inside


def drawn(name: str, **parameters: Any) -> tuple[Any, Any, Arrays]:
    workload = catalogue.find(name)
    parsed = catalogue.parse_parameters(workload, parameters)
    return workload, parsed, inputs.generate(workload, parsed, seed=1)


@pytest.mark.parametrize("waves", [1, 3, 14])
def test_an_eigenmode_of_the_heat_equation_decays_at_its_rate_in_closed_form(waves: int) -> None:
    workload, parameters, _ = drawn("heat-equation", size=16, ratio=0.2)
    mode = heat.eigenmode(16, waves)
    later = workload.reference(parameters, Arrays(state={"u": mode}), 50)["u"]
    assert later == pytest.approx(heat.decay(parameters, waves) ** 50 * mode, abs=1e-13)


def test_heat_stays_between_the_coldest_and_the_hottest_and_the_edges_keep_theirs() -> None:
    workload, parameters, arrays = drawn("heat-equation", size=16, ratio=0.25)
    start, later = arrays.state["u"], workload.reference(parameters, arrays, 100)["u"]
    inside = (slice(1, -1), slice(1, -1))
    assert start.min() <= later.min()
    assert later.max() <= start.max()
    assert np.ptp(later[inside]) < np.ptp(start[inside]) / 2
    edges = np.ones_like(start, bool)
    edges[inside] = False
    assert (later[edges] == start[edges]).all()


def test_the_error_of_the_atoms_energy_falls_to_a_quarter_if_the_time_step_is_halved() -> None:
    _, parameters, arrays = drawn("lennard-jones", cells=3, dt=0.004)

    def error(dt: float) -> float:
        _, energies = atoms.trajectory(parameters.model_copy(update={"dt": dt}), arrays.state, round(0.2 / dt))
        return float(np.abs(energies - energies[0]).max())

    assert error(0.004) / error(0.002) == pytest.approx(4, rel=0.1)
    assert error(0.004) / atoms.count_atoms(parameters) < 1e-3


def test_atoms_keep_their_total_momentum_and_return_if_time_is_reversed() -> None:
    workload, parameters, arrays = drawn("lennard-jones", cells=3)
    there = workload.reference(parameters, arrays, 20)
    assert np.abs(there["v"].sum(0)).max() < 1e-11
    turned = {"x": there["x"], "v": -there["v"], "f": atoms.forces(np, there["x"], atoms.box(parameters))}
    back = workload.reference(parameters, Arrays(state=turned), 20)
    assert back["x"] == pytest.approx(arrays.state["x"], abs=1e-10)


def test_the_force_on_an_atom_is_the_negative_slope_of_the_energy() -> None:
    _, parameters, arrays = drawn("lennard-jones", cells=3)
    x, side = arrays.state["x"], atoms.box(parameters)
    step = np.zeros_like(x)
    step[7, 1] = 1e-5
    slope = (atoms.energy(np, x + step, side) - atoms.energy(np, x - step, side)) / 2e-5
    assert atoms.forces(np, x, side)[7, 1] == pytest.approx(-slope, rel=1e-6)


def test_a_cart_and_its_pole_obey_lagranges_equations() -> None:
    rng = np.random.default_rng(0)
    state, force = rng.uniform(-1, 1, (100, 4)), rng.uniform(-10, 10, 100)
    _, _, angle, angular_speed = state.T
    acceleration, angular_acceleration = cartpole.accelerations(np, state, force)
    moment = cartpole.POLE * cartpole.HALF_LENGTH  # kg m
    swing = angular_acceleration * np.cos(angle) - angular_speed**2 * np.sin(angle)
    assert (cartpole.CART + cartpole.POLE) * acceleration + moment * swing == pytest.approx(force)
    # A rod's moment of inertia about its end is 4/3 m l^2, with l half of its length.
    torque = 4 / 3 * cartpole.HALF_LENGTH * angular_acceleration + acceleration * np.cos(angle)
    assert torque == pytest.approx(cartpole.GRAVITY * np.sin(angle))


def test_a_pole_that_falls_starts_again_and_its_episode_is_counted() -> None:
    workload, parameters, arrays = drawn("cartpole-rollout", environments=16, steps=60)
    later = workload.reference(parameters, arrays, 60)
    assert later["episodes"].min() >= 1
    assert np.abs(later["state"][:, 2]).max() <= math.radians(12)


def test_no_cart_comes_so_close_to_a_limit_that_rounding_decides() -> None:
    workload, parameters, arrays = drawn("cartpole-rollout", environments=4096, steps=30)
    rounded = Arrays(
        state={name: np.float32(array) for name, array in arrays.state.items()},
        batches=[{name: np.float32(array) for name, array in batch.items()} for batch in arrays.batches],
    )
    exact, single = (workload.reference(parameters, given, 30) for given in (arrays, rounded))
    assert (exact["episodes"] == single["episodes"]).all()


def test_the_normals_of_a_sphere_and_their_albedos_follow_from_its_images() -> None:
    workload, parameters, arrays = drawn("photometric-stereo", size=16)
    b = workload.reference(parameters, arrays, 2)["b"]
    albedos = np.linalg.norm(b, axis=1)
    assert b / albedos[:, None] == pytest.approx(stereo.normals_of_sphere(parameters))
    assert (albedos > 0.3).all()
    assert (albedos < 0.9).all()


def test_only_a_fit_whose_error_is_small_enough_is_compared_as_the_closed_form() -> None:
    workload, parameters, arrays = drawn("photometric-stereo", size=16)
    right = workload.reference(parameters, arrays, 2)["b"]
    noise = np.random.default_rng(0).standard_normal(right.shape)
    close, far = right + 1e-4 * noise, right + 1e-2 * noise
    assert (workload.canonical(parameters, arrays, {"b": close})["b"] == right).all()
    assert (workload.canonical(parameters, arrays, {"b": far})["b"] == far).all()


@pytest.mark.parametrize("scheme", ["int8-weights", "int8-both"])
def test_a_product_in_eight_bits_is_compared_as_exact_and_one_in_four_bits_is_not(scheme: str) -> None:
    workload, parameters, arrays = drawn("quantized-linear", inputs=64, outputs=32, batch=4, scheme=scheme)
    x, w = arrays.state["x"], arrays.batches[0]["w"]

    def compared(levels: int) -> np.ndarray[Any, Any]:
        scale = np.abs(w).max(0) / levels
        compared: np.ndarray[Any, Any] = workload.canonical(
            parameters, arrays, {"y": x @ (np.rint(w / scale) * scale)}
        )["y"]
        return compared

    assert (compared(127) == x @ w).all()
    assert not (compared(7) == x @ w).any()


def test_the_error_of_a_solution_falls_with_the_fourth_power_of_its_step() -> None:
    _, _, arrays = drawn("neural-ode", batch=4)
    errors = kutta.convergence(arrays.state["z"], 8.0, [64, 128, 256])
    assert errors[:-1] / errors[1:] == pytest.approx(16, rel=0.15)


def test_the_gradient_through_a_solver_is_the_slope_of_its_loss() -> None:
    _, _, arrays = drawn("neural-ode", work="train", batch=3, hidden=4, steps=5, time=1.0)
    weights, batch = arrays.state, arrays.batches[0]

    def loss(change: float, name: str, place: tuple[int, ...]) -> float:
        changed = {key: array.copy() for key, array in weights.items()}
        changed[name][place] += change
        end = kutta.solve(kutta.vector_field(np, changed), batch["z"], 0.2, 5)
        return float(((end - batch["targets"]) ** 2).mean())

    gradients = kutta.gradients(weights, batch, 0.2, 5)
    for name, place in (("w1", (1, 2)), ("b1", (3,)), ("w2", (0, 1)), ("b2", (1,))):
        slope = (loss(1e-5, name, place) - loss(-1e-5, name, place)) / 2e-5
        assert gradients[name][place] == pytest.approx(slope, rel=1e-6)


def test_a_pendulum_keeps_its_energy_to_fourth_order() -> None:
    _, _, arrays = drawn("neural-ode", batch=4)
    start = arrays.state["z"]

    def drift(steps: int) -> float:
        end = kutta.solve(lambda z: kutta.pendulum(np, z), start, 8.0 / steps, steps)
        return float(np.abs(kutta.energy(end) - kutta.energy(start)).max())

    assert drift(64) / drift(128) > 14
    assert drift(128) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("use", "library"),
    [
        ("pytorch/torchdiffeq-adaptive", "torchdiffeq"),
        pytest.param("jax/diffrax-adaptive", "diffrax", marks=pytest.mark.nightly),  # compiles for seconds
    ],
)
def test_adaptive_steps_are_counted_and_end_near_the_solution(use: str, library: str) -> None:
    if not find_spec(library):
        pytest.skip(f"needs accelbench[scientific], which has {library}")
    code = f"""
from accelbench_runner.launch import observe
adapter, program, work = prepare("neural-ode", "{use}", {{"work": "adaptive", "batch": 4}}, precision="float64")
calls, _ = observe.make_calls(adapter, program, work)
print(json.dumps(observe.observations(adapter, program, calls, catalogue.find("neural-ode").observes)))
"""
    found = inside(use.partition("/")[0], code)
    assert found["raised"] == "nothing"
    assert 10 < found["triedSteps"] < 200
    assert 0 < float(found["largestError"]) < 1e-3
    assert 0 < float(found["energyDrift"]) < 1e-3


def test_a_cart_moves_as_in_gymnasium() -> None:
    """The state that Gymnasium 1.4's CartPole has after ten actions, from the same start."""
    workload, parameters, _ = drawn("cartpole-rollout", environments=1, steps=10)
    actions = (1, -1, 1, 1, -1, -1, 1, -1, -1, -1)
    batches = [{"actions": np.array([float(action)]), "starts": np.zeros((1, 4))} for action in actions]
    start = {"state": np.array([[0.03, -0.02, 0.04, 0.01]]), "episodes": np.zeros(1)}
    later = workload.reference(parameters, Arrays(state=start, batches=batches), 10)
    gymnasium = [0.04509094094045767, -0.4139738050405515, 0.022006426937311124, 0.677716843138056]
    assert later["state"][0] == pytest.approx(gymnasium, rel=1e-12)
