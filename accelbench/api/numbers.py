"""The numbers that are measured of a variant, each written once: here.

From here come the result's schema, what an expectation can ask for, columns of the reports, metrics for Prometheus and
docs/reference/numbers.md. To add one: report it from a launch (a field of `Facts`), name that field here, draw a panel.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from accelbench.document import DecimalString, Document

Unit = Literal[
    "", "s", "B", "B/s", "FLOP", "FLOP/s", "FLOP/B", "J", "steps", "times", "share", "of the tolerance", "currency"
]
"""An empty one is of things that are counted; `currency` is that of the case's price."""
Reduction = Literal["agreed", "most", "fewest", "first"]
"""What is kept of several launches; `agreed`: what all of them say, and nothing where they differ."""


@dataclass(frozen=True)
class Number:
    """What is known of a number besides its value."""

    meaning: str
    name: str = ""
    """In results and manifests; a field of `Numbers` gives its own."""
    unit: Unit = ""
    fact: str = ""
    """Where a launch reports it: a field of `Facts`, or after a dot one inside it. Empty: it is calculated."""
    launches: Reduction = "agreed"
    timed: bool = False
    """It is made from times: where a check rejects the variant, it is not shown."""
    table: Literal["", "work", "program"] = ""
    """Of the reports, where it is a column."""
    heading: str = ""
    """Of that column; `{unit}` is what the workload calls a unit of work, `{currency}` that of the case's price."""
    brief: bool = True
    """Whether that column is in the terminal, too."""
    metric: str = ""
    """Prometheus's name for it; empty: it is not exported."""
    expected: bool = False
    """Whether an expectation can ask for it."""
    over_baseline: bool = False
    """It holds a variant against the baseline, and says nothing of the baseline."""
    compared: bool = False
    """It is over the baseline, and has the interval of a comparison."""
    undisturbed: bool = False
    """Other load on the machine does not change it, so that any launch tells it."""
    asked_by: str = ""
    """The check that asks the same: where no other fails, an expectation can be decided."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The meaning is what the schema says of the field."""
        return {**handler(schema), "description": self.meaning}


Count = int | None
Decimal = DecimalString | None


class Numbers(Document):
    """What was measured of a variant; what nobody could read, or launches do not agree on, is missing."""

    units_per_call: Annotated[
        Count,
        Number("Units of work in one call.", fact="units_per_call", launches="first"),
    ] = None
    parity: Annotated[
        Decimal,
        Number(
            "The largest error of the outputs over its tolerance, the most of all launches; above 1 is wrong.",
            unit="of the tolerance",
            expected=True,
            undisturbed=True,
            asked_by="parity",
        ),
    ] = None
    flops_per_unit: Annotated[
        Decimal, Number("Floating-point operations in a unit of work, as the workload declares them.", unit="FLOP")
    ] = None
    bytes_per_unit: Annotated[
        Decimal, Number("Bytes that a unit of work has to move, as the workload declares them.", unit="B")
    ] = None
    flops_per_second: Annotated[
        Decimal,
        Number(
            "Floating-point operations per second: the workload's own count over the time of a unit.",
            unit="FLOP/s",
            timed=True,
            table="work",
            heading="rate",
            metric="accelbench_flops_per_second",
        ),
    ] = None
    bytes_per_second: Annotated[
        Decimal,
        Number(
            "The workload's own count of bytes over the time of a unit: from a cache where they fit one.",
            unit="B/s",
            timed=True,
            table="work",
            heading="bandwidth",
        ),
    ] = None
    intensity: Annotated[
        Decimal, Number("Floating-point operations for each byte that has to move.", unit="FLOP/B")
    ] = None
    share_of_limit: Annotated[
        Decimal,
        Number(
            "The rate as a share of what the binding limit allows; 1 is the roofline.",
            unit="share",
            timed=True,
            table="work",
            heading="share of limit",
        ),
    ] = None
    limit_flops_per_second: Annotated[Decimal, Number("What the device can compute.", unit="FLOP/s")] = None
    limit_bytes_per_second: Annotated[Decimal, Number("What the device's memory can move.", unit="B/s")] = None
    peak_memory_bytes: Annotated[
        Count,
        Number(
            "Peak memory, the most of all launches. On a GPU: of live arrays. On a CPU: of the process while it ran "
            "compiled steps, without the files of libraries, above its level before setup.",
            unit="B",
            fact="peak_memory_bytes",
            launches="most",
            table="work",
            heading="memory",
            metric="accelbench_memory_peak_bytes",
        ),
    ] = None
    compile_peak_memory_bytes: Annotated[
        Count,
        Number(
            "Peak memory of the process while it set up, compiled and made the first call.",
            unit="B",
            fact="compile_peak_memory_bytes",
            launches="most",
            table="work",
            heading="while compiling",
            brief=False,
        ),
    ] = None
    reserved_memory_bytes: Annotated[
        Count,
        Number(
            "Peak memory of a GPU that the allocator held, in use or not.",
            unit="B",
            fact="reserved_memory_bytes",
            launches="most",
            table="work",
            heading="reserved",
            brief=False,
        ),
    ] = None
    device_joules_per_unit: Annotated[
        Decimal,
        Number(
            "Mean power of the device in the steady phase, as it counts itself (the median over launches), times the "
            "time of a unit.",
            unit="J",
            timed=True,
            table="work",
            heading="Device energy per {unit}",
            brief=False,
        ),
    ] = None
    cpu_joules_per_unit: Annotated[
        Decimal,
        Number(
            "Mean power of all processors of the machine in the steady phase (RAPL, neighbours included), times the "
            "time of a unit.",
            unit="J",
            timed=True,
            table="work",
            heading="CPU energy per {unit}",
            brief=False,
        ),
    ] = None
    price_per_unit: Annotated[
        Decimal,
        Number(
            "Money: the profile's price an hour times the time of a unit. What compiling costs is not in it.",
            unit="currency",
            timed=True,
            table="work",
            heading="{currency} per {unit}",
            metric="accelbench_step_price",
        ),
    ] = None
    kernels_per_call: Annotated[
        Count,
        Number(
            "Instructions of the optimised HLO that run by themselves in one call. A fusion is one; a loop counts as "
            "often as it runs; of branches the longest counts.",
            fact="executable.kernels_per_call",
            table="program",
            heading="kernels in a call",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    products_per_call: Annotated[
        Count,
        Number(
            "Matrix products in one call, counted in the optimised program or as they were dispatched, where the "
            "workload declares its operations.",
            fact="operations.found.products",
            launches="fewest",
            table="program",
            heading="matrix products",
            expected=True,
            undisturbed=True,
            asked_by="work-present",
        ),
    ] = None
    program_size: Annotated[
        Count,
        Number(
            "Operations in the program that the compiler is given (StableHLO), each function and body once.",
            fact="executable.program_size",
            table="program",
            heading="operations given to the compiler",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    temporary_bytes: Annotated[
        Count,
        Number(
            "Bytes for what is neither argument nor output, such as copies.",
            unit="B",
            fact="executable.temporary_bytes",
            table="program",
            heading="temporary",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    aliased_bytes: Annotated[
        Count,
        Number(
            "Bytes of outputs that share the memory of arguments.",
            unit="B",
            fact="executable.aliased_bytes",
            table="program",
            heading="outputs that reuse input buffers",
            expected=True,
            undisturbed=True,
        ),
    ] = None

    accessed_bytes: Annotated[
        Count,
        Number(
            "Bytes that the instructions of the optimised HLO read and write in one call, by XLA's estimate: what is "
            "fused is counted once.",
            unit="B",
            fact="executable.accessed_bytes",
            table="program",
            heading="read and written in a call",
            metric="accelbench_executable_accessed_bytes",
            expected=True,
            undisturbed=True,
        ),
    ] = None

    def value(self, name: str) -> int | float | None:
        """The number of that field, as a number."""
        found: int | str | None = getattr(self, name)
        return float(found) if isinstance(found, str) else found

    def without_timed(self) -> Self:
        """The same without what is made from times."""
        return self.model_copy(update={field: None for field, number in MEASURED.items() if number.timed})


def _measured() -> Mapping[str, Number]:
    """Each field of `Numbers` with what is known of it."""
    found = {}
    for name, field in Numbers.model_fields.items():
        number = next(each for each in field.metadata if isinstance(each, Number))
        found[name] = replace(number, name=field.alias or name)
    return found


MEASURED = _measured()
"""By the field's name."""
READ_OFF = (
    Number(
        "Baseline seconds over variant seconds: above 1 the variant is faster.",
        name="speedup",
        unit="times",
        metric="accelbench_speedup_ratio",
        expected=True,
        over_baseline=True,
        compared=True,
    ),
    Number(
        "Steps after which compiling has paid back against the baseline.",
        name="paysBackSteps",
        unit="steps",
        expected=True,
        over_baseline=True,
        compared=True,
    ),
    Number(
        "Steady seconds per unit of work.", name="seconds", unit="s", metric="accelbench_step_seconds", expected=True
    ),
    Number("Seconds that compiling takes.", name="compileSeconds", unit="s", expected=True),
    Number(
        "Seconds that compiling takes in a new process on warm caches.",
        name="warmCompileSeconds",
        unit="s",
        expected=True,
    ),
    Number(
        "The time of compiling over the baseline's.",
        name="compileRatio",
        unit="times",
        expected=True,
        over_baseline=True,
    ),
    Number("The first call's time over a later one's.", name="firstCallRatio", unit="times", expected=True),
    Number(
        "How far launches lie apart: the 95th percentile less the 5th, over the median.",
        name="launchSpread",
        unit="share",
        expected=True,
    ),
    Number("Peak memory over the baseline's.", name="peakMemoryRatio", unit="times", expected=True, over_baseline=True),
)
"""Those that are read off the rest of a result."""
NUMBERS: Mapping[str, Number] = {number.name: number for number in (*READ_OFF, *MEASURED.values())}
"""All of them, by name."""

EXPECTED = tuple(name for name, number in NUMBERS.items() if number.expected)
if TYPE_CHECKING:
    ExpectedNumber = str
else:
    ExpectedNumber = Literal[EXPECTED]
"""The name of a number that an expectation can ask for."""
