"""Run a variant's program once in float64, untimed, so that the judge can tell a wrong formula from rounding.

Rounding hides small mistakes: in bfloat16, a biased variance is within the tolerance. The same program in float64 shows
them. No other check can distinguish a wrong formula from a correct one that is less exact.

`out` is what a step returns besides the new state.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.catalogue import inputs, workload_checks
from accelbench.launch.facts import FormulaRun
from accelbench.workload import VariantKind, Workload
from accelbench_runner.frameworks.adapter import Adapter, export_numbers
from accelbench_runner.frameworks.build import rebuild_program
from accelbench_runner.outputs import FORMULA, save

ROUNDS = 1
"""Number of rounds, from the first on, in which the program runs in float64: it is the same program in every round."""


@dataclass(frozen=True)
class Formula:
    """Hold what is needed to run a variant's program in float64."""

    workload: Workload
    parameters: Any
    kind: VariantKind
    seed: int
    """Seed of the inputs, which are those of the timed program."""
    units: int
    """Minimum units of work after which the outputs are compared."""
    directory: Path
    """Directory of the file with the outputs."""

    def run(self, adapter: Adapter) -> FormulaRun:
        """Run the program with an adapter for float64, and write the program's outputs for the judge.

        If the program cannot be built or run in float64, `unable` of the result describes the exception.
        """
        try:
            arrays = inputs.generate(self.workload, self.parameters, self.seed)
            program = rebuild_program(type(self.workload)(), self.kind, self.parameters, arrays, adapter)
            del arrays  # frees their memory
            work = adapter.prepare(program)
            adapter.compile_ahead(work)
            state, out, units = work.fresh(), None, 0
            while units < self.units:
                state, out = work.call(state, work.batches)
                units += work.units
            work.synchronise((state, out))
            exported = workload_checks.call_export(program, state, work.last_out(out))
            outputs = export_numbers(adapter, program.export, exported)
            save(self.directory / FORMULA, outputs)
            del state, out, exported, outputs  # frees memory for `arithmetic`, which may make a call
            arithmetic = adapter.accounting.arithmetic(work)
            return FormulaRun(units=units, types=sorted(arithmetic.types), accuracy_limit=arithmetic.accuracy_limit)
        except workload_checks.ERRORS as error:
            description, advice = workload_checks.describe(error), adapter.advise(error)
            return FormulaRun(unable=f"{description}; {advice}" if advice else description)
