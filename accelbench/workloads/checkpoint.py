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
RATE = 0.1


class Checkpoint(Workload):
    """Train least squares by Adam, with the training's state passing through a file.

    Rows 55 and 56 of the claims: in JAX "just save (params, opt_state) and you can resume exactly where you left off";
    whoever forgets opt_state, or forgets to return it, finds that "your optimizer resets". orbax is compared with
    torch.save and torch.distributed.checkpoint. The timed step saves parameters and both moments to a new directory and
    loads them. The observation runs a training that passes through a checkpoint before every call but the first, next
    to one that does not. The libraries promise different things: orbax compresses and syncs to disk, torch.save does
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
        """Time a checkpoint, or observe a training."""
        if parameters.asks == "resume":
            return Measure(protocol="observe", unit="call", differentiates=True)
        return Measure(unit="checkpoint")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw parameters w (size,) and moments m and v; or w, examples (32, size) and targets (32,) to train on."""
        import numpy as np

        w, m = rng.standard_normal(parameters.size), rng.standard_normal(parameters.size)
        if parameters.asks == "time":
            return Arrays(state={"w": w, "m": m, "v": m**2})
        examples = {"x": rng.standard_normal((EXAMPLES, parameters.size)), "y": rng.standard_normal(EXAMPLES)}
        return Arrays(
            state={"w": w}, batches=[{**examples, "number": np.array(number)} for number in range(parameters.calls)]
        )

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Return what was saved: loading must give the same."""
        del parameters, units
        return arrays.state

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count no operations, and three arrays that are written and read."""
        return Cost(flops=0.0, bytes=6.0 * parameters.size * float_bytes)

    @variant("jax/orbax")
    def orbax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Save parameters and optimizer state with orbax.checkpoint.StandardCheckpointer."""
        return _jax_program(parameters, arrays, tools, _through_orbax)

    @variant("jax/orbax-parameters-only")
    def orbax_parameters_only(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Save the parameters, and make a new optimizer state after loading."""
        return _jax_program(parameters, arrays, tools, _through_orbax, complete=False)

    @variant("jax/state-not-returned")
    def state_not_returned(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Make the article's mistake without a file: opt_state is not returned, so each step begins with a new one."""
        if parameters.asks == "time":
            raise ValueError("this variant makes no checkpoint to time: set asks: resume")
        return _jax_program(parameters, arrays, tools, lambda tree, _path: tree, complete=False)

    @variant("pytorch/save")
    def save(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Save both state_dicts with torch.save and read them with torch.load."""
        return _torch_program(parameters, arrays, tools, _through_save)

    @variant("pytorch/save-parameters-only")
    def save_parameters_only(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Leave out the optimizer's state_dict."""
        return _torch_program(parameters, arrays, tools, _through_save, complete=False)

    @variant("pytorch/distributed")
    def distributed(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Save with torch.distributed.checkpoint, in one process."""
        return _torch_program(parameters, arrays, tools, _through_distributed)


Through = Callable[[Any, Path], Any]
"""A function that writes a pytree of arrays to a new path and returns what it reads back from there."""


def _jax_program(
    parameters: Checkpoint.Parameters, arrays: Arrays, tools: Tools, through: Through, *, complete: bool = True
) -> Program:
    import jax
    import optax

    if parameters.asks == "time":
        return _timed(tools.put(dict(arrays.state)), through, {} if complete else {"m", "v"})
    adam = optax.adam(RATE)

    def train(state: Any, batch: Any) -> Any:
        w, moments = state
        gradient = jax.grad(lambda w: ((batch["x"] @ w - batch["y"]) ** 2).mean())(w)
        updates, moments = adam.update(gradient, moments, w)
        return optax.apply_updates(w, updates), moments

    def resumed(state: Any) -> Any:
        if complete:
            return _in_new_directory(through, state)
        w = _in_new_directory(through, {"w": state[0]})["w"]
        return w, adam.init(w)

    w = tools.put(arrays.state["w"])
    return _observed(arrays, tools, (w, adam.init(w)), jax.jit(train), resumed, lambda state: state[0])


def _torch_program(
    parameters: Checkpoint.Parameters, arrays: Arrays, tools: Tools, through: Through, *, complete: bool = True
) -> Program:
    import copy

    import torch

    if parameters.asks == "time":
        return _timed(tools.put(dict(arrays.state)), through, {} if complete else {"m", "v"})

    def new() -> tuple[Any, Any]:
        w = torch.nn.Parameter(tools.put(arrays.state["w"]))
        return w, torch.optim.Adam([w], lr=RATE)

    def train(state: Any, batch: Any) -> Any:
        w, adam = copy.deepcopy(state)
        adam.zero_grad()
        ((batch["x"] @ w - batch["y"]) ** 2).mean().backward()
        adam.step()
        return w, adam

    def resumed(state: Any) -> Any:
        (w, adam), (again, new_adam) = state, new()
        saved = {"w": w.detach(), **({"adam": adam.state_dict()} if complete else {})}
        loaded = _in_new_directory(through, saved)
        again.data.copy_(loaded["w"])
        if complete:
            new_adam.load_state_dict(loaded["adam"])
        return again, new_adam

    return _observed(arrays, tools, new(), train, resumed, lambda state: state[0].detach())


def _timed(state: Any, through: Through, left_out: Any) -> Program:
    """Make the timed program; `left_out` names what is not saved and stays as it is."""

    def step(state: Any, _: Any) -> tuple[Any, None]:
        kept = {name: state[name] for name in left_out}
        saved = {name: array for name, array in state.items() if name not in left_out}
        return {**_in_new_directory(through, saved), **kept}, None

    return Program(state=state, step=step, placed=True)


def _observed(arrays: Arrays, tools: Tools, start: Any, train: Any, resumed: Any, parameters_of: Any) -> Program:
    """Run two trainings side by side; the second passes through a checkpoint before each step but the first."""

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        straight, through = state
        if batch["number"]:
            through = resumed(through)
        straight, through = train(straight, batch), train(through, batch)
        return (straight, through), abs(parameters_of(straight) - parameters_of(through)).max()

    def observe(outs: Sequence[Any]) -> dict[str, Any]:
        differences = [float(out) for out in outs if out is not None]
        return {"bitwiseResumes": differences.count(0.0), "largestDifference": differences[-1] if differences else None}

    batches = [
        {**tools.put({"x": leaf["x"], "y": leaf["y"]}), "number": int(leaf["number"])} for leaf in arrays.batches
    ]
    return Program(state=(start, start), step=step, batches=batches, placed=True, observe=observe)


def _in_new_directory(through: Through, tree: Any) -> Any:
    with TemporaryDirectory() as directory:
        return through(tree, Path(directory, "checkpoint"))


def _through_orbax(tree: Any, path: Path) -> Any:
    from orbax import checkpoint

    with checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, tree)
        checkpointer.wait_until_finished()
        return checkpointer.restore(path, tree)


def _through_save(tree: Any, path: Path) -> Any:
    import torch

    torch.save(tree, path)
    return torch.load(path)


def _through_distributed(tree: Any, path: Path) -> Any:
    import torch
    from torch.distributed import checkpoint
    from torch.utils import _pytree as pytree

    checkpoint.save(tree, checkpoint_id=path)
    loaded = pytree.tree_map(lambda leaf: torch.empty_like(leaf) if isinstance(leaf, torch.Tensor) else leaf, tree)
    checkpoint.load(loaded, checkpoint_id=path)
    return loaded
