"""Runs code on an adapter in a process of the framework's own: several programs for the price of one import."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

PREPARE = """
import json
from accelbench import catalogue, inputs
from accelbench_runner.frameworks.adapter import Settings, UnsupportedError
from accelbench_runner.frameworks.{framework} import {adapter} as Adapter

def prepare(workload, use, parameters, precision="float32", threads=1):
    workload = catalogue.find(workload)
    kind = workload.variants()[use]
    adapter = Adapter(Settings(kind.mode, catalogue.parse_options(kind, {{}}), "cpu", precision, threads))
    adapter.import_compiler()
    adapter.initialise()
    parsed = catalogue.parse_parameters(workload, parameters)
    arrays = inputs.generate(workload, parsed, 0)
    program = getattr(workload, kind.method)(parsed, arrays, adapter)
    return adapter, program, adapter.prepare(program)
"""


def inside(framework: str, code: str, environment: Mapping[str, str] | None = None) -> Any:
    """What `code` prints, as JSON; it runs in a new process, after `prepare` has been defined."""
    adapter = {"jax": "Jax", "pytorch": "PyTorch"}[framework]
    program = PREPARE.format(framework=framework, adapter=adapter) + code
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
