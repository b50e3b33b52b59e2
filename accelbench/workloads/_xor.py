"""Share the parts of xor's variants: samples, when they are placed, and when losses are read."""

from collections.abc import Callable
from typing import Any

from accelbench.workload import Arrays, Tools

SAMPLES = [([0.0, 0.0], 0.0), ([0.0, 1.0], 1.0), ([1.0, 0.0], 1.0), ([1.0, 1.0], 0.0)]
LAYERS = [(2, 2), (2, 1)]
"""(in, out) of each layer; each layer is a sigmoid of an affine map."""


def loss_reader(parameters: Any) -> Callable[[Any], Any]:
    """Return a function that turns losses into Python numbers, which blocks, or leaves them as they are."""
    return (lambda losses: losses.tolist()) if parameters.losses == "read" else (lambda losses: losses)


def over_samples(parameters: Any, train: Any, convert: Callable[[Any], Any]) -> Any:
    """Return (state, samples) -> (state, losses), given `train`: (state, x, y) -> (state, loss)."""
    read = loss_reader(parameters)

    def step(state: Any, samples: Any) -> tuple[Any, Any]:
        losses = []
        for x, y in samples:
            state, loss = train(state, x, y)
            losses.append(read(loss))
        return state, losses

    if parameters.samples == "placed":
        return step
    return lambda state, samples: step(state, ((convert(x), convert(y)) for x, y in samples))


def samples(parameters: Any, arrays: Arrays, tools: Tools) -> Any:
    """Return pairs of input (2,) and target (1,), on the device or as lists that are converted in their turn."""
    samples = list(zip(*arrays.batches[0].values(), strict=True))
    return tools.put(samples) if parameters.samples == "placed" else [(x.tolist(), y.tolist()) for x, y in samples]


def layers(arrays: Arrays) -> list[tuple[Any, Any]]:
    """Return weights (out, in) and biases (out,) of each layer."""
    return [(arrays.state[f"weights{number}"], arrays.state[f"biases{number}"]) for number in (1, 2)]


def named(numbers: Any) -> dict[str, Any]:
    """Return weights and biases by the reference's names."""
    return dict(zip(("weights1", "biases1", "weights2", "biases2"), numbers, strict=True))
