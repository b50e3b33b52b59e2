"""Computes what variants export, without timing: a process for each framework, many variants in it."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from accelbench import catalogue, frameworks
from accelbench.api.case import Precision
from accelbench.catalogue import inputs
from accelbench.launch.facts import Facts, Gradients
from accelbench.workload import NamedArrays, Workload
from accelbench_runner.clock import MonotonicClock
from accelbench_runner.launch import blocks, dependence
from accelbench_runner.launch.stages import MINIMUM_PARITY_UNITS


@dataclass(frozen=True)
class Asked:
    """One variant of one workload, small. `workload` is a name of the catalogue, or `MODULE:CLASS`.

    `backend` is torch.compile's, where its default is not to be used.
    """

    workload: str
    use: str
    precision: Precision
    parameters: tuple[tuple[str, Any], ...] = ()
    backend: str = ""

    @property
    def file(self) -> str:
        return "_".join(map(str, asdict(self).values())).translate({ord(each): "-" for each in "/:'(), []"}) + ".npz"

    def __str__(self) -> str:
        parameters = ",".join(f"{name}={value}" for name, value in self.parameters)
        workload = self.workload.partition(":")[2] or self.workload
        return f"{workload}({parameters}) {self.use} {self.precision} {self.backend}".rstrip()


@cache
def find(name: str) -> Workload:
    module, _, kind = name.partition(":")
    if not kind:
        return catalogue.find(name)
    found: Workload = getattr(import_module(module), kind)()
    return found


CALLS = 10
"""Of a block that is made again untimed."""
UNSEEN_SEED = 2
"""Of the inputs that a program is given beside those of seed 1, which it was built from."""


def compute(asked: Asked, directory: Path) -> tuple[NamedArrays, int, Facts]:
    """What the variant exports, after how many units, and in float32 the facts of a look at other inputs."""
    from accelbench_runner.frameworks.adapter import Adapter, AdapterSettings

    if asked.use.startswith("jax"):
        _keep_what_jax_compiles()
    # Inductor names its own here once it has begun; each adapter would count all files in it.
    os.environ.pop("TORCHINDUCTOR_CACHE_DIR", None)
    workload = find(asked.workload)
    parameters = catalogue.parse_parameters(workload, dict(asked.parameters))
    measure = workload.measure(parameters)
    kind = workload.variants()[asked.use]
    settings = AdapterSettings(
        mode=kind.adapter_mode,
        options=catalogue.parse_options(kind, {}),
        platform="cpu",
        precision=asked.precision,
        threads=1,
        differentiates=measure.differentiates,
    )
    adapter: Adapter = frameworks.find(kind.framework).load_adapter()(settings)
    adapter.import_compiler()
    adapter.initialise()
    if "/compile" in asked.use:
        # A launch has a process of its own. Here programs share one, and a function may be compiled eight times in it.
        import_module("torch").compiler.reset()
        _use_backend(asked.backend)
    program = getattr(workload, kind.method)(parameters, inputs.generate(workload, parameters, seed=1), adapter)
    work = adapter.prepare(program)
    adapter.compile_ahead(work)
    state, units = work.fresh(), 0
    least = 1 if measure.protocol == "episode" else MINIMUM_PARITY_UNITS  # an episode's calls have batches of their own
    while units < max(least, measure.parity_units):
        state, out = work.call(state, work.batches)
        units += work.units
    if (device := adapter.device((state, out)).platform) != "cpu":
        raise RuntimeError(f"what it returned was on '{device}'")
    outputs = adapter.to_numpy(program.export(state, work.last_out(out)))
    if asked.precision != "float32":
        return outputs, units, Facts()
    clock = MonotonicClock()

    def block(calls: int, inspect: Callable[[Any], None]) -> float:
        return blocks.time_calls(work, calls, clock, inspect)

    seen: dict[str, Any] = {}
    if measure.protocol != "episode":
        seconds = block(1, lambda _: None)
        block_made = dependence.make_extra_block(adapter, program, work, block, CALLS, seconds, UNSEEN_SEED)
        seen = dependence.replay_block(adapter, program, work, block_made)
    subject = dependence.Subject(
        workload=workload,
        parameters=parameters,
        kind=kind,
        seed=1,
        step=program.step,
        export=program.export,
        work=dependence.without_inputs(work),
    )
    cost = workload.cost(parameters, adapter.float_bytes)
    facts = Facts(
        arithmetic=adapter.accounting.arithmetic(work),
        units_per_call=work.units,
        **({"flops_per_unit": cost.flops} if cost else {}),
        gradients=Gradients(wanted=measure.differentiates, found=adapter.gradients()),
        precision=adapter.precision(),
        dependence=dependence.examine(adapter, subject, UNSEEN_SEED, directory, clock).model_copy(update=seen),
    )
    return outputs, units, facts


def _use_backend(backend: str) -> None:
    """Make `backend` what torch.compile uses by default; "" is PyTorch's own default."""
    import torch

    original = getattr(torch.compile, "func", torch.compile)  # as PyTorch has it, without another program's backend
    torch.compile = partial(original, backend=backend) if backend else original


def _keep_what_jax_compiles() -> None:
    """As Inductor does on its own; JAX, too, knows its version and the machine by what it keeps."""
    import jax

    jax.monitoring.clear_event_listeners()  # of the adapters before this one, hundreds in the end
    jax.config.update("jax_compilation_cache_dir", str(Path.home() / ".cache" / "accelbench" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def main() -> None:
    """Read what is asked line by line; write FILE or, where that failed, its .error, and then FILE's name.

    End after a failure: a program that has failed to compile can leave PyTorch unable to differentiate forward.
    """
    import numpy as np

    directory = Path(sys.argv[1])
    for line in sys.stdin:
        each = json.loads(line)
        asked = Asked(**{**each, "parameters": tuple(map(tuple, each["parameters"]))})
        try:
            beside = (directory / asked.file).with_suffix("")
            beside.mkdir(exist_ok=True)
            outputs, units, facts = compute(asked, beside)
            (beside / "facts.json").write_text(facts.to_json())
        except Exception as error:  # noqa: BLE001 - the test that asked for this one will tell
            (directory / asked.file).with_suffix(".error").write_text(f"{type(error).__name__}: {error}")
        else:
            np.savez(directory / asked.file, allow_pickle=False, units=np.array(units), **outputs)
        sys.stdout.write(f"{asked.file}\n")
        sys.stdout.flush()
        if not (directory / asked.file).exists():
            return


if __name__ == "__main__":
    main()
