"""Run code on an adapter, in a process that has imported the frameworks and done nothing else."""

import json
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import Any

import forks
from accelbench_runner.supervisor.launcher import launch_environment

PREPARE = """
import json
from accelbench import catalogue
from accelbench.catalogue import inputs
from accelbench_runner.frameworks.adapter import AdapterSettings, UnsupportedError
from accelbench_runner.frameworks.{framework} import {adapter} as Adapter

def prepare(workload, use, parameters, precision="float32", threads=1):
    workload = catalogue.find(workload)
    kind = workload.variants()[use]
    parsed = catalogue.parse_parameters(workload, parameters)
    options, differentiates = catalogue.parse_options(kind, {{}}), workload.measure(parsed).differentiates
    adapter = Adapter(AdapterSettings(kind.adapter_mode, options, "cpu", precision, threads, differentiates))
    adapter.import_compiler()
    adapter.initialise()
    arrays = inputs.generate(workload, parsed, 0)
    program = getattr(workload, kind.method)(parsed, arrays, adapter)
    return adapter, program, adapter.prepare(program)
"""


def inside(framework: str, code: str, environment: Mapping[str, str] | None = None) -> Any:
    """Run `code` after `prepare` in a process of its own, and parse its last line as JSON."""
    adapter = {"jax": "Jax", "pytorch": "PyTorch", "numpy": "NumPy"}[framework]
    program = PREPARE.format(framework=framework, adapter=adapter) + code
    with TemporaryDirectory() as directory:
        own = {**launch_environment(Path(directory)), **(environment or {})}
        output, errors = Path(directory, "output"), Path(directory, "errors")
        file = Path(directory, "program.py")
        file.write_text(program)
        process, receiving = forks.start(_run, (file, own, output, errors))
        receiving.close()
        process.join()
        assert process.exitcode == 0, errors.read_text()
        return json.loads(output.read_text().splitlines()[-1])


def _run(given: tuple[Path, Mapping[str, str], Path, Path], _sending: Connection) -> None:
    program, environment, output, errors = given
    forks.become(environment, output=output, errors=errors)
    run_path(str(program))
    sys.stdout.flush()
