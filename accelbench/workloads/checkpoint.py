"""Checkpoints: what saving and loading takes, and whether training goes on from one as if nothing had been."""

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
    """A training of least squares by Adam, whose state goes through a file.

    Rows 55 and 56 of the claims: in JAX "just save (params, opt_state) and you can resume exactly where you left off";
    who forgets opt_state, or to return it, finds that "your optimizer resets". orbax against torch.save and
    torch.distributed.checkpoint. What is timed is a checkpoint saved to a new directory and loaded from it, parameters
    and both moments. What is observed is a training that goes through a checkpoint in each call but the first, beside
    one that does not. They promise different things: orbax compresses, and asks the disk to write; torch.save does
    neither, and torch.distributed.checkpoint asks the disk to write.
    """

    name = "checkpoint"
    moves_once = True
    modes = {}
    libraries = {"jax": ("optax", "orbax.checkpoint"), "pytorch": ("torch.distributed.checkpoint",)}
    observes = {
        "bitwiseResumes": "Calls after which both trainings are the same to the last bit.",
        "largestDifference": "Between parameters of the two, after all calls.",
    }

    class Parameters(WorkloadParameters):
        """What is saved, and what is asked."""

        size: int = Field(
            default=1_000_000, ge=1, le=2**30, description="Parameters; a checkpoint has three times that."
        )
        calls: int = Field(default=4, ge=2, le=100, description="Steps of the training that is observed.")
        asks: Literal["time", "resume"] = Field(
            default="time",
            description="time: of saving and loading; resume: whether training goes on as it would have.",
        )

    def measure(self, parameters: Parameters) -> Measure:
        """A checkpoint is timed, a training is looked at."""
        if parameters.asks == "resume":
            return Measure(protocol="observe", unit="call", differentiates=True)
        return Measure(unit="checkpoint")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Parameters w (size,) and moments m and v; or w, and examples (32, size) and targets (32,) to train on."""
        import numpy as np

        w, m = rng.standard_normal(parameters.size), rng.standard_normal(parameters.size)
        if parameters.asks == "time":
            return Arrays(state={"w": w, "m": m, "v": m**2})
        examples = {"x": rng.standard_normal((EXAMPLES, parameters.size)), "y": rng.standard_normal(EXAMPLES)}
        return Arrays(
            state={"w": w}, batches=[{**examples, "number": np.array(number)} for number in range(parameters.calls)]
        )

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """What was saved is what is loaded."""
        del parameters, units
        return arrays.state

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """No operation; three arrays are read and written."""
        return Cost(flops=0.0, bytes=6.0 * parameters.size * float_bytes)

    @variant("jax/orbax")
    def orbax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """orbax.checkpoint.StandardCheckpointer: parameters and the optimiser's state."""
        return _jax_program(parameters, arrays, tools, _through_orbax)

    @variant("jax/orbax-parameters-only")
    def orbax_parameters_only(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Parameters are saved, the optimiser's state is made anew."""
        return _jax_program(parameters, arrays, tools, _through_orbax, complete=False)

    @variant("jax/state-not-returned")
    def state_not_returned(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """The article's mistake, without any file: opt_state is not returned, and each step begins with a new one."""
        if parameters.asks == "time":
            raise ValueError("without a checkpoint there is nothing to time: ask for asks: resume")
        return _jax_program(parameters, arrays, tools, lambda tree, _path: tree, complete=False)

    @variant("pytorch/save")
    def save(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """torch.save and torch.load of both state_dicts."""
        return _torch_program(parameters, arrays, tools, _through_save)

    @variant("pytorch/save-parameters-only")
    def save_parameters_only(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """The optimiser's state_dict is left out."""
        return _torch_program(parameters, arrays, tools, _through_save, complete=False)

    @variant("pytorch/distributed")
    def distributed(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """torch.distributed.checkpoint, in one process."""
        return _torch_program(parameters, arrays, tools, _through_distributed)


Through = Callable[[Any, Path], Any]
"""Writes a pytree of arrays to a path that is not there yet, and returns what it reads from it."""


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
    """`left_out` names what is not saved, and is kept as it is."""

    def step(state: Any, _: Any) -> tuple[Any, None]:
        kept = {name: state[name] for name in left_out}
        saved = {name: array for name, array in state.items() if name not in left_out}
        return {**_in_new_directory(through, saved), **kept}, None

    return Program(state=state, step=step, placed=True)


def _observed(arrays: Arrays, tools: Tools, start: Any, train: Any, resumed: Any, parameters_of: Any) -> Program:
    """Two trainings side by side; the second goes through a checkpoint before each step but the first."""

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
        {**tools.put({"x": each["x"], "y": each["y"]}), "number": int(each["number"])} for each in arrays.batches
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
    loaded = pytree.tree_map(lambda each: torch.empty_like(each) if isinstance(each, torch.Tensor) else each, tree)
    checkpoint.load(loaded, checkpoint_id=path)
    return loaded
