"""Define the numbers that are measured of a variant, each in one place.

The result's schema, the metrics of expectations, columns of reports and dashboards, Prometheus metrics and
docs/reference/numbers.md are generated from them. To add a number, report it from a launch (a field of `Facts`) and
name that field here.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Self

from accelbench.api.number import DISPATCHED, Number
from accelbench.document import Document, SixDigits

Count = int | None
Decimal = SixDigits | None


class Numbers(Document):
    """Hold the numbers of a variant; a number that is unreadable, or differs between launches, is missing."""

    units_per_call: Annotated[
        Count,
        Number("Units of work in one call.", fact="units_per_call", launches="first"),
    ] = None
    parity: Annotated[
        Decimal,
        Number(
            "The largest error of the outputs divided by its tolerance, the maximum over launches; above 1 is wrong.",
            unit="of the tolerance",
            expected=True,
            undisturbed=True,
            checked_by="parity",
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
            "Floating-point operations per second: the workload's own count divided by the time of a unit.",
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
            "The workload's own count of bytes divided by the time of a unit; a cache serves them if they fit.",
            unit="B/s",
            timed=True,
            table="work",
            heading="bandwidth",
        ),
    ] = None
    intensity: Annotated[Decimal, Number("Floating-point operations per byte that has to move.", unit="FLOP/B")] = None
    share_of_limit: Annotated[
        Decimal,
        Number(
            "The rate as a share of what the binding limit allows; 1 is the roofline.",
            unit="share",
            timed=True,
            table="work",
            heading="share of limit",
            metric="accelbench_roofline_share_ratio",
        ),
    ] = None
    limit_flops_per_second: Annotated[Decimal, Number("What the device can compute.", unit="FLOP/s")] = None
    limit_bytes_per_second: Annotated[Decimal, Number("What the device's memory can move.", unit="B/s")] = None
    peak_memory_bytes: Annotated[
        Count,
        Number(
            "Peak memory, the maximum over launches. On a GPU: of live arrays, and in JAX also of what XLA tried while "
            "it compiled. On a CPU: of the process while it ran compiled steps, above its level before setup and "
            "without the files of libraries.",
            unit="B",
            fact="peak_memory_bytes",
            launches="most",
            table="work",
            heading="memory",
            metric="accelbench_memory_peak_bytes",
            column="Peak memory",
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
            "Peak memory that a GPU's allocator held, in use or not.",
            unit="B",
            fact="reserved_memory_bytes",
            launches="most",
            table="work",
            heading="reserved",
            brief=False,
        ),
    ] = None
    recompilations: Annotated[
        Count,
        Number(
            "Compilations while blocks were timed, the maximum over launches. Any at all fail the check recompiled, "
            "except in an episode, which counts them in its time.",
            fact="recompilations",
            launches="most",
            metric="accelbench_recompilations",
            column="Compiled anew",
            expected=True,
            undisturbed=True,
            checked_by="recompiled",
        ),
    ] = None
    p99_seconds: Annotated[
        Decimal,
        Number(
            "Seconds that 1 % of the calls exceeded, or of the requests from arrival to answer: the geometric mean "
            "over launches, with protocol latency or arrivals.",
            unit="s",
            timed=True,
            metric="accelbench_step_p99_seconds",
        ),
    ] = None
    requests_per_second: Annotated[
        Count,
        Number(
            "Mean rate at which requests arrive, the same for all variants; with the protocol arrivals.",
            metric="accelbench_requests_per_second",
        ),
    ] = None
    utilisation: Annotated[
        Decimal,
        Number(
            "Share of the time in which requests are served: their rate times the mean service, the median over "
            "launches. Close to 1 the queue grows without end; with the protocol arrivals.",
            unit="share",
            timed=True,
            metric="accelbench_request_utilisation_ratio",
        ),
    ] = None
    service_seconds: Annotated[
        Decimal,
        Number(
            "Seconds in which a request is served, without its wait for earlier ones: the median over requests and "
            "the geometric mean over launches; with the protocol arrivals.",
            unit="s",
            timed=True,
            metric="accelbench_request_service_seconds",
        ),
    ] = None
    service_p99_seconds: Annotated[
        Decimal,
        Number(
            "Seconds of service that 1 % of the requests exceeded, the geometric mean over launches. What a closed "
            "loop shows in place of the response; with the protocol arrivals.",
            unit="s",
            timed=True,
            metric="accelbench_request_service_p99_seconds",
        ),
    ] = None
    device_joules_per_unit: Annotated[
        Decimal,
        Number(
            "Energy: mean power of the device in the steady phase, by its own count (the median over launches), times "
            "the time of a unit.",
            unit="J",
            timed=True,
            table="work",
            heading="Device energy per {unit}",
            brief=False,
            metric="accelbench_step_device_joules",
        ),
    ] = None
    cpu_joules_per_unit: Annotated[
        Decimal,
        Number(
            "Energy: mean power of all processors of the machine in the steady phase (RAPL, other programs included), "
            "times the time of a unit.",
            unit="J",
            timed=True,
            table="work",
            heading="CPU energy per {unit}",
            brief=False,
            metric="accelbench_step_cpu_joules",
        ),
    ] = None
    price_per_unit: Annotated[
        Decimal,
        Number(
            "Price: the profile's price per hour times the time of a unit, without compiling.",
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
            "Instructions of the optimised HLO that run separately in one call. A fusion is one; a loop counts as "
            "often as it runs; of several branches the longest counts. If nothing is compiled: operations dispatched, "
            "except views.",
            fact="executable.kernels_per_call",
            estimated_for=("cuda", DISPATCHED),
            table="program",
            heading="kernels in a call",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    dispatched_per_call: Annotated[
        Count,
        Number(
            "Operations that PyTorch dispatches one by one in a call of a program that is not compiled, except views.",
            fact="arithmetic.operations_dispatched",
            table="program",
            heading="operations dispatched",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    dispatched_bytes: Annotated[
        Count,
        Number(
            "Bytes of the operands and results of the operations that PyTorch dispatches in a call of a program that "
            "is not compiled. Of an array that is looked up or updated in part, only that part counts.",
            unit="B",
            fact="arithmetic.bytes_dispatched",
            table="program",
            heading="read and written by them",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    products_per_call: Annotated[
        Count,
        Number(
            "Matrix products in one call, counted in the optimised program or as dispatched, if the workload declares "
            "its operations.",
            fact="operations.counted.products",
            launches="fewest",
            table="program",
            heading="matrix products",
            expected=True,
            undisturbed=True,
            checked_by="work-present",
        ),
    ] = None
    program_size: Annotated[
        Count,
        Number(
            "Operations in the program that the compiler gets (StableHLO); each function and body counts once.",
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
            "Bytes that are neither arguments nor outputs, such as copies.",
            unit="B",
            fact="executable.temporary_bytes",
            estimated_for=("cuda", DISPATCHED),
            table="program",
            heading="temporary",
            metric="accelbench_executable_temporary_bytes",
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
            metric="accelbench_executable_aliased_bytes",
            expected=True,
            undisturbed=True,
        ),
    ] = None

    accessed_bytes: Annotated[
        Count,
        Number(
            "Bytes that the instructions of the optimised HLO read and write in one call, by XLA's estimate; fused "
            "operations and bodies of loops count once. Unknown with a library's operation whose bytes XLA does not "
            "know.",
            unit="B",
            fact="executable.accessed_bytes",
            table="program",
            heading="read and written in a call",
            metric="accelbench_executable_accessed_bytes",
            column="Read and written",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    argument_bytes: Annotated[
        Count,
        Number(
            "Bytes of a call's arguments on one device: state and batch.",
            unit="B",
            fact="executable.argument_bytes",
            metric="accelbench_executable_argument_bytes",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    output_bytes: Annotated[
        Count,
        Number(
            "Bytes of a call's outputs on one device, including those that reuse arguments.",
            unit="B",
            fact="executable.output_bytes",
            metric="accelbench_executable_output_bytes",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    peak_bytes: Annotated[
        Count,
        Number(
            "The most bytes that a call holds on one device at once, by the compiler's plan: arguments, outputs and "
            "temporaries. If nothing is compiled: bytes of arrays, as operations create and drop them. peakMemoryBytes "
            "is what a run really used.",
            unit="B",
            fact="executable.peak_bytes",
            estimated_for=("cuda", DISPATCHED),
            metric="accelbench_executable_peak_bytes",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    kernels: Annotated[
        Count,
        Number(
            "Instructions of the optimised HLO that run separately; each counts once, however often a loop runs it. If "
            "nothing is compiled: operations dispatched, except views.",
            fact="executable.kernels",
            estimated_for=("cuda", DISPATCHED),
            metric="accelbench_executable_kernels",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    fusions: Annotated[
        Count,
        Number(
            "Kernels into which the compiler has fused several operations.",
            fact="executable.fusions",
            estimated_for=("cuda",),
            expected=True,
            undisturbed=True,
        ),
    ] = None
    collectives: Annotated[
        Count,
        Number(
            "Instructions of the optimised HLO that exchange data between devices; each counts once.",
            fact="executable.collectives",
            metric="accelbench_executable_collectives",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    collective_bytes: Annotated[
        Count,
        Number(
            "Bytes that collectives leave on one device; each counts once.",
            unit="B",
            fact="executable.collective_bytes",
            metric="accelbench_executable_collective_bytes",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    all_reduces: Annotated[
        Count,
        Number(
            "All-reduce collectives; each counts once.",
            fact="executable.all_reduces",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    all_reduce_bytes: Annotated[
        Count,
        Number(
            "Bytes that all-reduce collectives leave on one device; each counts once.",
            unit="B",
            fact="executable.all_reduce_bytes",
            metric="accelbench_executable_all_reduce_bytes",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    all_gathers: Annotated[
        Count,
        Number(
            "All-gather collectives; each counts once.",
            fact="executable.all_gathers",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    all_gather_bytes: Annotated[
        Count,
        Number(
            "Bytes that all-gather collectives leave on one device; each counts once.",
            unit="B",
            fact="executable.all_gather_bytes",
            metric="accelbench_executable_all_gather_bytes",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    reduce_scatters: Annotated[
        Count,
        Number(
            "Reduce-scatter collectives; each counts once.",
            fact="executable.reduce_scatters",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    reduce_scatter_bytes: Annotated[
        Count,
        Number(
            "Bytes that reduce-scatter collectives leave on one device; each counts once.",
            unit="B",
            fact="executable.reduce_scatter_bytes",
            metric="accelbench_executable_reduce_scatter_bytes",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    all_to_alls: Annotated[
        Count,
        Number(
            "All-to-all collectives; each counts once.",
            fact="executable.all_to_alls",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    all_to_all_bytes: Annotated[
        Count,
        Number(
            "Bytes that all-to-all collectives leave on one device; each counts once.",
            unit="B",
            fact="executable.all_to_all_bytes",
            metric="accelbench_executable_all_to_all_bytes",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    collective_permutes: Annotated[
        Count,
        Number(
            "Collective-permute collectives; each counts once.",
            fact="executable.collective_permutes",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    collective_permute_bytes: Annotated[
        Count,
        Number(
            "Bytes that collective-permute collectives leave on one device; each counts once.",
            unit="B",
            fact="executable.collective_permute_bytes",
            metric="accelbench_executable_collective_permute_bytes",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    flops_per_call: Annotated[
        Count,
        Number(
            "Floating-point operations of one call as written, on all devices, including unused results.",
            unit="FLOP",
            fact="executable.flops_per_call",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    fits: Annotated[
        Count,
        Number(
            "1 if the program fits into the memory of the target's devices, else 0.",
            fact="compiled.fits",
            estimated_for=("cuda", DISPATCHED),
            metric="accelbench_target_fits",
            expected=True,
            undisturbed=True,
        ),
    ] = None
    device_memory_bytes: Annotated[
        Count,
        Number(
            "Memory that a program can use on one device of the target.",
            unit="B",
            fact="compiled.device_memory_bytes",
            metric="accelbench_target_memory_bytes",
        ),
    ] = None

    def value(self, name: str) -> int | float | None:
        """Return the value of the field `name` as a number (decimal strings become floats); None if it is not set."""
        value: int | str | None = getattr(self, name)
        return float(value) if isinstance(value, str) else value

    def without_timed(self) -> Self:
        """Return a copy without the numbers that derive from a time."""
        timed_fields = [field for field, number in MEASURED.items() if number.timed]
        return self.model_copy(update=dict.fromkeys(timed_fields, None))


def _describe_fields() -> Mapping[str, Number]:
    """Return the `Number` that describes each field of the model `Numbers`, by field name."""
    descriptions = {}
    for field_name, field in Numbers.model_fields.items():
        # The field's annotation, `Annotated[..., Number(...)]`, has the description; only its name is missing there.
        description = next(item for item in field.metadata if isinstance(item, Number))
        descriptions[field_name] = replace(description, name=field.alias or field_name)
    return descriptions


MEASURED = _describe_fields()
"""Descriptions of the fields of `Numbers`, by field name."""
