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
    """Set up PyTorch in float32, with as many threads as processors; once a process."""
    options = catalogue.parse_options(catalogue.find("matmul-chain").variants()[USE], {})
    made = PyTorch(
        AdapterSettings(
            mode="eager", options=options, platform="cpu", precision="float32", threads=THREADS, differentiates=False
        )
    )
    made.initialise()
    return made


def chain(made: PyTorch, size: int, length: int) -> Work:
    """Multiply `length` matrices of (size, size) in a call."""
    workload = catalogue.find("matmul-chain")
    parameters = catalogue.parse_parameters(workload, {"size": size, "length": length})
    return made.prepare(workload.pytorch(parameters, inputs.generate(workload, parameters, 0), made))
