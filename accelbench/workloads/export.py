"""Measure an exported program: how long it takes to write and read, and whether it runs like the live program."""

from collections.abc import Callable, Sequence
from dataclasses import replace
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

ROUNDING = 1e-3
"""Largest difference of two results that counts as rounding; results are between -1 and 1."""
PLATFORMS = ("cpu", "cuda", "tpu")
"""Platforms on which a file of jax.export can be loaded and run."""

Call = Callable[[Any, Any], Any]
"""Function (x, weights) -> next x."""
ThroughFile = Callable[[Any, Any, Path], Call]
"""Function (x, weights, path) that exports the program for such arrays to a file, and returns the loaded program."""


class Export(Workload):
    """Compute x <- tanh(x W + b) for `layers` layers, by a program that was exported to a file and loaded.

    Row 83 of the claims: deploying an exported program. `asks: run` times calls of the loaded program and of the live
    one, which was not exported; with `asks: file`, a timed step exports, writes, reads, compiles and runs. `asks: same`
    times nothing, and observes whether both give the same bits, and for which shapes and platforms a file can be used.
    Weights are arguments in both frameworks: torch.export would save the weights of a module, and jax.export those that
    the function captures. torch.export.save still writes them, among the example inputs that it keeps in its file.
    """

    name = "export"
    modes = {"jax": ("jit",), "pytorch": ("eager", "compile")}
    libraries = {"exported_by_jax": ("flatbuffers",), "called_without_jit": ("flatbuffers",)}
    observes = {
        "bitwiseEqual": "True if the loaded program always returned the bits of the live one.",
        "fileBytes": "Size of the file.",
        "otherBatch": "True if one file also takes another number of rows.",
        "platforms": "Platforms that one file is for.",
    }

    class Parameters(WorkloadParameters):
        """Set the network, and choose the question."""

        layers: int = Field(default=4, ge=1, le=200, description="Layers.")
        width: int = Field(default=256, ge=1, le=16_384, description="Features of a row, in every layer.")
        batch: int = Field(default=32, ge=2, le=65_536, description="Rows.")
        asks: Literal["run", "file", "same"] = Field(
            default="run",
            description="run: calls of the loaded program; file: exporting, writing, reading and a call; same: nothing "
            "is timed, and what both programs return is compared.",
        )

    def measure(self, parameters: Parameters) -> Measure:
        """Use the protocol `observe` for `asks: same`, and otherwise `steady`, the default."""
        if parameters.asks == "same":
            return Measure(protocol="observe", unit="call")
        return Measure(unit="call" if parameters.asks == "run" else "round trip")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw x (batch, width), and weights (width, width) and biases (width,) of each layer."""
        p = parameters
        network = {}
        for layer in range(p.layers):
            network[f"w{layer}"] = rng.standard_normal((p.width, p.width)) / p.width**0.5
            network[f"b{layer}"] = 0.1 * rng.standard_normal(p.width)
        return Arrays(state={"x": rng.standard_normal((p.batch, p.width))}, batches=(network,))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Apply all layers `units` times in NumPy."""
        import numpy as np

        x = arrays.state["x"]
        for _ in range(units):
            x = _network(np.tanh, parameters.layers)(x, arrays.batches[0])
        return {"x": x}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count a product, a sum and a tanh in each layer; weights and x are read, the next x is written."""
        p = parameters
        layer = 2.0 * p.batch * p.width**2 + 2 * p.batch * p.width
        weights = p.layers * (p.width**2 + p.width)
        return Cost(flops=p.layers * layer, bytes=float(weights + 2 * p.batch * p.width) * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Run the live program, which is not exported."""
        import jax.numpy as jnp

        return _live_program(parameters, arrays, tools, _network(jnp.tanh, parameters.layers))

    @variant("jax/export")
    def exported_by_jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use jax.export, and call the loaded program under jax.jit."""
        import jax

        return _jax_program(parameters, arrays, tools, jax.jit)

    @variant("jax/export-call")
    def called_without_jit(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use jax.export, and call the loaded program without jax.jit."""
        return _jax_program(parameters, arrays, tools, lambda call: call)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Run the live program, which is not exported."""
        import torch

        return _live_program(parameters, arrays, tools, _network(torch.tanh, parameters.layers))

    @variant("pytorch/export")
    def exported_by_torch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.export.save and torch.export.load; the loaded program runs eagerly."""
        import torch

        def through_file(x: Any, weights: Any, path: Path) -> Call:
            """Export the network to a file, and load it."""
            file = path.with_suffix(".pt2")
            torch.export.save(_exported_program(parameters, x, weights), file)
            call: Call = torch.export.load(file).module()
            return call

        return _program(parameters, arrays, tools, _network(torch.tanh, parameters.layers), through_file, ("any",))

    @variant("pytorch/aoti")
    def compiled_ahead_of_time(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use AOTInductor, which compiles the exported program into a shared library."""
        import torch
        from torch import _inductor as inductor  # PyTorch's documentation imports it so

        def through_file(x: Any, weights: Any, path: Path) -> Call:
            """Compile the network into a package, and load it."""
            file = str(path.with_suffix(".pt2"))
            inductor.aoti_compile_and_package(_exported_program(parameters, x, weights), package_path=file)
            call: Call = inductor.aoti_load_package(file)
            return call

        live = _network(torch.tanh, parameters.layers)
        device = tools.put(arrays.state["x"]).device.type
        return _program(parameters, arrays, tools, live, through_file, (device,))


def _network(tanh: Callable[[Any], Any], layers: int) -> Call:
    """Return the function that applies all layers, in any framework; `tanh` is the framework's."""

    def apply(x: Any, weights: Any) -> Any:
        """Return x after all layers."""
        for layer in range(layers):
            x = tanh(x @ weights[f"w{layer}"] + weights[f"b{layer}"])
        return x

    return apply


def _exported_program(parameters: Export.Parameters, x: Any, weights: Any) -> Any:
    """Return torch's ExportedProgram of the network, for any number of rows from 2 on."""
    import torch

    network = _network(torch.tanh, parameters.layers)

    class Network(torch.nn.Module):  # type: ignore[misc]
        """Take the weights as an argument."""

        def forward(self, x: Any, weights: Any) -> Any:
            """Apply all layers."""
            return network(x, weights)

    rows = {0: torch.export.Dim("rows", min=2)}
    return torch.export.export(Network(), (x, weights), dynamic_shapes=(rows, dict.fromkeys(weights)))


def _jax_program(
    parameters: Export.Parameters, arrays: Arrays, tools: Tools, compile_call: Callable[[Call], Call]
) -> Program:
    """Return a program for JAX whose network is exported and loaded; `compile_call` compiles the loaded network."""
    import jax
    import jax.numpy as jnp
    from jax import export

    live = jax.jit(_network(jnp.tanh, parameters.layers))

    def through_file(x: Any, weights: Any, path: Path) -> Call:
        """Export the network for any number of rows to a file, and load it."""
        (rows,) = export.symbolic_shape("rows")
        shapes = (jax.ShapeDtypeStruct((rows, x.shape[1]), x.dtype), jax.eval_shape(lambda weights: weights, weights))
        path.write_bytes(export.export(live, platforms=PLATFORMS)(*shapes).serialize())
        return compile_call(export.deserialize(bytearray(path.read_bytes())).call)

    return _program(parameters, arrays, tools, live, through_file, PLATFORMS)


def _live_program(parameters: Export.Parameters, arrays: Arrays, tools: Tools, live: Call) -> Program:
    """Return a program that runs the network without a file; raises ValueError unless `parameters.asks` is `run`."""
    if parameters.asks != "run":
        raise ValueError("this variant writes no file: leave it out, or set asks: run")
    return Program(
        state=tools.put(arrays.state["x"]),
        step=lambda x, weights: (live(x, weights), None),
        batches=tools.put(arrays.batches),
        export=lambda x, _: {"x": x},
    )


def _program(
    parameters: Export.Parameters,
    arrays: Arrays,
    tools: Tools,
    live: Call,
    through_file: ThroughFile,
    platforms: Sequence[str],
) -> Program:
    """Return the program for `parameters.asks`; `live` is the network that was not exported."""
    import numpy as np

    program = replace(_live_program(parameters.model_copy(update={"asks": "run"}), arrays, tools, live), placed=True)
    x, weights = program.state, program.batches[0]
    if parameters.asks == "run":
        with TemporaryDirectory() as directory:
            loaded = through_file(x, weights, Path(directory, "program"))
        return replace(program, step=lambda x, weights: (loaded(x, weights), None))
    if parameters.asks == "file":

        def round_trip(x: Any, weights: Any) -> tuple[Any, None]:
            """Export the network to a file, load it and return the next x."""
            with TemporaryDirectory() as directory:
                return through_file(x, weights, Path(directory, "program"))(x, weights), None

        return replace(program, step=round_trip)

    def compare(x: Any, weights: Any) -> tuple[Any, Any]:
        """Return the next x, the size of the file, and how the loaded program's results differ from the live one's."""
        with TemporaryDirectory() as directory:
            loaded = through_file(x, weights, Path(directory, "program"))
            size = sum(file.stat().st_size for file in Path(directory).iterdir())
        right = live(x, weights)
        fewer = len(x) // 2 + 1  # rows, at least 2: torch.export treats a single row as a special shape
        other_error = abs(loaded(x[:fewer], weights) - right[:fewer]).max()
        found = {"equal": bool((loaded(x, weights) == right).all()), "bytes": size, "other_error": float(other_error)}
        return right, {name: np.array(value) for name, value in found.items()}

    def observe(outs: Sequence[Any]) -> dict[str, Any]:
        """Return the workload's observations; a call that failed has None in `outs`."""
        known = [out for out in outs if out is not None]
        if not known:
            return {}
        return {
            "bitwiseEqual": all(bool(out["equal"]) for out in known),
            "fileBytes": int(known[-1]["bytes"]),
            "otherBatch": bool(known[-1]["other_error"] < ROUNDING),
            "platforms": list(platforms),
        }

    return replace(program, step=compare, observe=observe)
