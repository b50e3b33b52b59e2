"""Make a step that every tool can time: a chain of matrix products in eager PyTorch, as a launch runs it."""

import os

from accelbench import catalogue
from accelbench.catalogue import inputs
from accelbench_runner.frameworks.adapter import AdapterSettings
from accelbench_runner.frameworks.pytorch import PyTorch
from accelbench_runner.frameworks.work import Work

USE = "pytorch/eager"
THREADS = len(os.sched_getaffinity(0))


def adapter() -> PyTorch:
    """Return the adapter of PyTorch in float32, with as many threads as processors; call it once in a process."""
    options = catalogue.parse_options(catalogue.find("matmul-chain").variants()[USE], {})
    torch_adapter = PyTorch(
        AdapterSettings(
            mode="eager", options=options, platform="cpu", precision="float32", threads=THREADS, differentiates=False
        )
    )
    torch_adapter.initialise()
    return torch_adapter


def chain(torch_adapter: PyTorch, size: int, length: int) -> Work:
    """Return a step whose call multiplies `length` matrices of shape (size, size)."""
    workload = catalogue.find("matmul-chain")
    parameters = catalogue.parse_parameters(workload, {"size": size, "length": length})
    arrays = inputs.generate(workload, parameters, 0)
    return torch_adapter.prepare(workload.pytorch(parameters, arrays, torch_adapter))
