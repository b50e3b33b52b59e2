"""Measure saving and loading a checkpoint, and observe whether training resumes exactly from it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import (
    Arrays,
    Cost,
    Measure,
    NamedArrays,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    variant,
)

if TYPE_CHECKING:
    from numpy.random import Generator

EXAMPLES = 32
"""Examples of the observed training."""
RATE = 0.1
"""Adam's step size."""


class Checkpoint(Workload):
    """Train least squares by Adam, with the training's state passing through a file.

    Rows 55 and 56 of the claims: in JAX "just save (params, opt_state) and you can resume exactly where you left off";
    if opt_state is not saved, or not returned by the step, "your optimizer resets". orbax is compared with torch.save
    and torch.distributed.checkpoint. With `asks: time`, a step saves parameters and both moments to a new directory and
    loads them. `asks: resume` observes two trainings: one is saved and loaded before every call but the first, the
    other never. The libraries promise different things: orbax compresses and syncs to disk, torch.save does
    neither, and torch.distributed.checkpoint syncs to disk.
    """

    name = "checkpoint"
    moves_once = True
    modes = {}
    libraries = {"jax": ("optax", "orbax.checkpoint"), "pytorch": ("torch.distributed.checkpoint",)}
    observes = {
        "bitwiseResumes": "Calls after which both trainings are equal bit by bit.",
        "largestDifference": "Largest difference of a parameter between the two, after all calls.",
    }

    class Parameters(WorkloadParameters):
        """Set what is saved and which question is asked."""

        size: int = Field(
            default=1_000_000, ge=1, le=2**30, description="Parameters; a checkpoint has three times as many numbers."
        )
        calls: int = Field(default=4, ge=2, le=100, description="Steps of the observed training.")
        asks: Literal["time", "resume"] = Field(
            default="time",
            description="time: saving and loading; resume: does training resume exactly?",
        )

    def measure(self, parameters: Parameters) -> Measure:
        """Use the protocol `observe` for `asks: resume`, and `steady`, the default, for `asks: time`."""
        if parameters.asks == "resume":
            return Measure(protocol="observe", unit="call", differentiates=True)
        return Measure(unit="checkpoint")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw the parameters w and, for `asks: time`, Adam's moments m and v, each (size,).

        For `asks: resume`, each call gets the same examples and its number.
        """
        import numpy as np

        w, m = rng.standard_normal(parameters.size), rng.standard_normal(parameters.size)
        if parameters.asks == "time":
            return Arrays(state={"w": w, "m": m, "v": m**2})  # second moments are never negative
        examples = {"x": rng.standard_normal((EXAMPLES, parameters.size)), "y": rng.standard_normal(EXAMPLES)}
        batches = [{**examples, "number": np.array(call)} for call in range(parameters.calls)]
        return Arrays(state={"w": w}, batches=batches)

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Return the state, which saving and loading must not change."""
        del parameters, units
        return arrays.state

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count no operations, and the bytes of w, m and v, which are written and read."""
        return Cost(flops=0.0, bytes=6.0 * parameters.size * float_bytes)

    @variant("jax/orbax")
    def orbax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Save parameters and optimizer state with orbax.checkpoint.StandardCheckpointer."""
        return _jax_program(parameters, arrays, tools, _save_and_load_with_orbax)

    @variant("jax/orbax-parameters-only")
    def orbax_parameters_only(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Save only the parameters with orbax, and make a new optimizer state after loading."""
        return _jax_program(parameters, arrays, tools, _save_and_load_with_orbax, saves_optimizer=False)

    @variant("jax/state-not-returned")
    def state_not_returned(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Leave opt_state out of what a step returns, so that each call starts with a new optimizer state.

        Raise ValueError for `asks: time`, because no checkpoint is saved.
        """
        if parameters.asks == "time":
            raise ValueError("this variant makes no checkpoint to time: set asks: resume")
        # The mistake has one effect: each call but the first starts with new moments, as without `saves_optimizer`.
        return _jax_program(parameters, arrays, tools, save_and_load=lambda tree, _path: tree, saves_optimizer=False)

    @variant("pytorch/save")
    def save(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Save parameters and optimizer state with torch.save, and load them with torch.load."""
        return _torch_program(parameters, arrays, tools, _save_and_load_with_torch)

    @variant("pytorch/save-parameters-only")
    def save_parameters_only(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Save only the parameters with torch.save, and make a new optimizer after loading."""
        return _torch_program(parameters, arrays, tools, _save_and_load_with_torch, saves_optimizer=False)

    @variant("pytorch/distributed")
    def distributed(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Save and load parameters and optimizer state with torch.distributed.checkpoint, in one process."""
        return _torch_program(parameters, arrays, tools, _save_and_load_with_torch_distributed)


SaveAndLoad = Callable[[Any, Path], Any]
"""A function that saves a pytree of arrays at a new path, loads it from there and returns it."""


def _jax_program(
    parameters: Checkpoint.Parameters,
    arrays: Arrays,
    tools: Tools,
    save_and_load: SaveAndLoad,
    *,
    saves_optimizer: bool = True,
) -> Program:
    """Return a JAX program that times a checkpoint (`asks: time`) or resumes a training from it (`asks: resume`).

    Without `saves_optimizer`, only w is saved, and not the optimizer's state.
    """
    import jax
    import optax

    if parameters.asks == "time":
        return _timed_program(tools.put(dict(arrays.state)), save_and_load, saves_optimizer=saves_optimizer)
    adam = optax.adam(RATE)

    def train(state: Any, batch: Any) -> Any:
        """Apply one step of Adam to w; return the new w and Adam's moments."""
        w, moments = state
        gradient = jax.grad(lambda w: ((batch["x"] @ w - batch["y"]) ** 2).mean())(w)
        updates, moments = adam.update(gradient, moments, w)
        return optax.apply_updates(w, updates), moments

    def resume(state: Any) -> Any:
        """Return the state after saving and loading; without `saves_optimizer`, with new moments."""
        if saves_optimizer:
            return _in_new_directory(save_and_load, state)
        w, _moments = state
        w = _in_new_directory(save_and_load, {"w": w})["w"]
        return w, adam.init(w)

    def parameters_of(state: Any) -> Any:
        """Return w, without Adam's moments."""
        w, _moments = state
        return w

    w = tools.put(arrays.state["w"])
    return _observed_program(arrays, tools, (w, adam.init(w)), jax.jit(train), resume, parameters_of)


def _torch_program(
    parameters: Checkpoint.Parameters,
    arrays: Arrays,
    tools: Tools,
    save_and_load: SaveAndLoad,
    *,
    saves_optimizer: bool = True,
) -> Program:
    """Return a PyTorch program that times a checkpoint (`asks: time`) or resumes a training from it (`asks: resume`).

    Without `saves_optimizer`, only w is saved, and not the optimizer's state.
    """
    import copy

    import torch

    if parameters.asks == "time":
        return _timed_program(tools.put(dict(arrays.state)), save_and_load, saves_optimizer=saves_optimizer)

    def create_state() -> tuple[Any, Any]:
        """Return the initial w, and a new optimizer for it."""
        w = torch.nn.Parameter(tools.put(arrays.state["w"]))
        return w, torch.optim.Adam([w], lr=RATE)

    def train(state: Any, batch: Any) -> Any:
        """Apply one step of Adam to a copy of the state, and return the copy."""
        w, adam = copy.deepcopy(state)  # the uninterrupted and the resumed training start from the same objects
        adam.zero_grad()
        ((batch["x"] @ w - batch["y"]) ** 2).mean().backward()
        adam.step()
        return w, adam

    def resume(state: Any) -> Any:
        """Return the state after saving and loading; without `saves_optimizer`, with a new optimizer."""
        w, adam = state
        new_w, new_adam = create_state()
        checkpoint = {"w": w.detach()}
        if saves_optimizer:
            checkpoint["adam"] = adam.state_dict()
        loaded = _in_new_directory(save_and_load, checkpoint)
        new_w.data.copy_(loaded["w"])
        if saves_optimizer:
            new_adam.load_state_dict(loaded["adam"])
        return new_w, new_adam

    def parameters_of(state: Any) -> Any:
        """Return w, without the optimizer."""
        w, _adam = state
        return w.detach()

    return _observed_program(arrays, tools, create_state(), train, resume, parameters_of)


def _timed_program(state: Any, save_and_load: SaveAndLoad, *, saves_optimizer: bool) -> Program:
    """Return a program whose step saves and loads w and, with `saves_optimizer`, Adam's moments m and v."""

    def step(state: Any, _: Any) -> tuple[Any, None]:
        """Save and load the arrays; return the state with the loaded arrays in place of the saved ones."""
        saved = state if saves_optimizer else {"w": state["w"]}
        return {**state, **_in_new_directory(save_and_load, saved)}, None

    return Program(state=state, step=step, placed=True)


def _observed_program(
    arrays: Arrays, tools: Tools, initial_state: Any, train: Any, resume: Any, parameters_of: Any
) -> Program:
    """Return a program that compares a resumed training with an uninterrupted one, both from `initial_state`.

    `train` maps (state, batch) to the next state. `resume` saves a state and returns what it loads. `parameters_of`
    returns the w of a state.
    """

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        """Train both states; return them and the largest difference of their parameters.

        The second state passes through a checkpoint before every call but the first.
        """
        uninterrupted, resumed = state
        if batch["number"] > 0:
            resumed = resume(resumed)
        uninterrupted, resumed = train(uninterrupted, batch), train(resumed, batch)
        difference = abs(parameters_of(uninterrupted) - parameters_of(resumed)).max()
        return (uninterrupted, resumed), difference

    def observe(differences: Sequence[Any]) -> dict[str, Any]:
        """Return the number of calls without a difference, and the largest difference after the last successful call.

        `differences` has the largest difference of a parameter after each call; None if the call failed.
        """
        known_differences = [float(difference) for difference in differences if difference is not None]
        return {
            "bitwiseResumes": known_differences.count(0.0),
            "largestDifference": known_differences[-1] if known_differences else None,
        }

    batches = []
    for batch in arrays.batches:
        examples = tools.put({"x": batch["x"], "y": batch["y"]})
        batches.append({**examples, "number": int(batch["number"])})
    return Program(state=(initial_state, initial_state), step=step, batches=batches, placed=True, observe=observe)


def _in_new_directory(save_and_load: SaveAndLoad, tree: Any) -> Any:
    """Save and load the pytree `tree` in a temporary directory; return the loaded tree."""
    with TemporaryDirectory() as directory:
        return save_and_load(tree, Path(directory, "checkpoint"))


def _save_and_load_with_orbax(tree: Any, path: Path) -> Any:
    """Save the tree at the path with orbax, and load it."""
    from orbax import checkpoint

    with checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, tree)
        checkpointer.wait_until_finished()
        return checkpointer.restore(path, tree)


def _save_and_load_with_torch(tree: Any, path: Path) -> Any:
    """Save the tree at the path with torch.save, and load it."""
    import torch

    torch.save(tree, path)
    return torch.load(path)


def _save_and_load_with_torch_distributed(tree: Any, path: Path) -> Any:
    """Save the tree with torch.distributed.checkpoint, and load it into new tensors."""
    import torch
    from torch.distributed import checkpoint
    from torch.utils import _pytree as pytree

    def empty_like(leaf: Any) -> Any:
        """Return an empty tensor like a tensor; any other leaf unchanged."""
        return torch.empty_like(leaf) if isinstance(leaf, torch.Tensor) else leaf

    checkpoint.save(tree, checkpoint_id=path)
    loaded = pytree.tree_map(empty_like, tree)
    checkpoint.load(loaded, checkpoint_id=path)  # writes into the tensors of `loaded`
    return loaded
