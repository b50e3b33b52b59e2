"""Build the tables of programs that were compiled for targets: whether they fit, and what they consist of. Pure.

The programs did not run, so the only time is that of compiling.
"""

from collections.abc import Iterator, Sequence

from accelbench import figures
from accelbench.api.compiled import CompiledVariant
from accelbench.api.result import Result, VariantResult
from accelbench.report.table import Table, TableColumn, filled

BAR_WIDTH = 12
"""Characters of a bar for all of a device's memory."""
KEY_COLUMNS = 2
"""Columns that identify a row: target and variant."""
ESTIMATE = "≈"
ESTIMATES = f"{ESTIMATE} is an estimate: on the device itself a compiler tunes kernels, and may choose others"
DISPATCHED = (
    f"PyTorch compiled nothing: its operations were dispatched on arrays without numbers; {ESTIMATE} counts these, and "
    "leaves out what its allocator and its libraries take"
)
NOT_DIVIDED = "A program is divided where its workload says how its arrays lie on devices."
NOT_DIVIDED_TORCH = (
    "PyTorch's programs are not divided yet: workloads would have to do it before they make an optimizer."
)
NO_TIME = "nothing ran: no time of these programs is known, and none can be derived"
KINDS = (
    ("all-reduce", "all_reduces", "all_reduce_bytes"),
    ("all-gather", "all_gathers", "all_gather_bytes"),
    ("reduce-scatter", "reduce_scatters", "reduce_scatter_bytes"),
    ("all-to-all", "all_to_alls", "all_to_all_bytes"),
    ("permute", "collective_permutes", "collective_permute_bytes"),
)


def is_compiled(result: Result) -> bool:
    """Return True if the case was compiled for a target instead of measured."""
    return result.case.accelerator.target is not None


def tables(results: Sequence[Result]) -> tuple[Table, ...]:
    """Return all tables that are not empty, with a row for each target and variant."""
    every = (memory(results), sizes(results), programs(results), fused(results))
    return tuple(table for table in every if table is not None)


def memory(results: Sequence[Result]) -> Table | None:
    """Return a table: does each program fit, and its peak memory as a share of the device's."""
    columns = (
        TableColumn("target"),
        TableColumn("variant"),
        TableColumn("fits", kind="verdict"),
        TableColumn("memory a device", kind="nowrap"),
        TableColumn("peak", number=True),
        TableColumn("of", number=True),
    )
    rows = []
    for target, variant, compiled in _programs(results):
        if compiled is None:
            rows.append((target, variant.name, "not compiled", "", "", ""))
            continue
        sign = ESTIMATE if "fits" in compiled.estimates else ""
        rows.append(
            (
                target,
                variant.name,
                f"{sign}{'fits' if compiled.fits else 'does not fit'}",
                bar(compiled.peak_bytes, compiled.device_memory_bytes),
                _NumberTexts(variant, compiled).size("peak_bytes"),
                figures.quantity(compiled.device_memory_bytes, "B") if compiled.device_memory_bytes else "",
            )
        )
    return filled("Does it fit", columns, rows)


def sizes(results: Sequence[Result]) -> Table | None:
    """Return a table of one device's memory and the FLOP of all; `reused` are outputs that alias arguments."""
    fields = ("argument_bytes", "output_bytes", "aliased_bytes", "temporary_bytes")
    heads = ("arguments", "outputs", "reused", "temporary", "FLOP")
    columns = (TableColumn("target"), TableColumn("variant"), *(TableColumn(head, number=True) for head in heads))
    rows = (
        (target, variant.name, *(_NumberTexts(variant, compiled).size(field) for field in fields), flops(variant))
        for target, variant, compiled in _programs(results)
        if compiled is not None
    )
    table = filled("Memory of one device, and floating-point operations of all", columns, rows)
    return table if table and len(table.columns) > KEY_COLUMNS else None


def programs(results: Sequence[Result]) -> Table | None:
    """Return a table of each program's contents, and of time and memory of the compiler."""
    columns = (
        TableColumn("target"),
        TableColumn("variant"),
        TableColumn("operations", number=True),
        TableColumn("kernels", number=True),
        TableColumn("fused", number=True),
        TableColumn("collectives"),
        TableColumn("compiling", number=True),
        TableColumn("compiler's memory", number=True),
    )
    rows = (
        (
            target,
            variant.name,
            (texts := _NumberTexts(variant, compiled)).count("program_size"),
            texts.count("kernels"),
            texts.count("fusions"),
            collectives(variant),
            *(("", "") if compiled.dispatched else (compiling(variant), texts.size("compile_peak_memory_bytes"))),
        )
        for target, variant, compiled in _programs(results)
        if compiled is not None
    )
    return filled("The program, each instruction once, and what compiling took", columns, rows)


def fused(results: Sequence[Result]) -> Table | None:
    """Return a table of the kernels that fuse the most operations."""
    columns = (TableColumn("target"), TableColumn("variant"), TableColumn("what one kernel computes", kind="sentence"))
    rows = (
        (target, variant.name, "; ".join(compiled.fused))
        for target, variant, compiled in _programs(results)
        if compiled and compiled.fused
    )
    table = filled("The largest kernels, by what they compute", columns, rows)
    return table if table and len(table.columns) > KEY_COLUMNS else None


def sentences(*results: Result) -> tuple[str, ...]:
    """Return the sentences about all programs without repetitions."""
    every = [sentence for result in results for sentence in _sentences(result)]
    return tuple(dict.fromkeys(every)) or ("Nothing was compiled.",)


def _sentences(result: Result) -> Iterator[str]:
    """Yield each program's headline, the compiler's refusal, why it is not divided, and variants that failed."""
    names = {compiled.variant for compiled in result.compiled}
    for compiled in result.compiled:
        yield f"{compiled.headline}."
        if compiled.refused:
            yield f"The compiler's message for {compiled.variant}: {compiled.refused}"
        if compiled.devices > 1 and not compiled.divided:
            why = NOT_DIVIDED_TORCH if compiled.dispatched else NOT_DIVIDED
            whole = f"each of {compiled.target}'s {compiled.devices} devices does all of it"
            yield f"{compiled.variant} is not divided: {whole}. {why}"
    for variant in result.variants:
        if variant.name not in names and variant.failure:
            yield f"{variant.name} was not compiled: {variant.failure.message.rstrip('.')}."


def footnotes(results: Sequence[Result]) -> tuple[str, ...]:
    """Return notes on the numbers: which are estimates, and that no time is known."""
    every = [compiled for result in results for compiled in result.compiled]
    estimated = any(compiled.estimates and not compiled.dispatched for compiled in every)
    dispatched = any(compiled.dispatched for compiled in every)
    return (*((ESTIMATES,) if estimated else ()), *((DISPATCHED,) if dispatched else ()), NO_TIME)


def label(result: Result) -> str:
    """Return the target and what distinguishes the case from others of the same target."""
    swept = ", ".join(f"{name} {value}" for name, value in result.case.swept.items())
    target = result.case.accelerator.target or ""
    return f"{target}, {swept}" if swept else target


def bar(part: int | None, whole: int | None) -> str:
    """Return a bar of `BAR_WIDTH` characters and the share; an arrow marks more than all; empty if unknown."""
    if part is None or not whole:
        return ""
    cells = round(BAR_WIDTH * part / whole)
    share = figures.percent(part / whole) if part else "0 %"
    return f"{'█' * min(cells, BAR_WIDTH)}{'░' * (BAR_WIDTH - cells)}{'▶' if cells > BAR_WIDTH else ''} {share}"


def collectives(variant: VariantResult) -> str:
    """Return the collectives by kind with their bytes on a device: `2 all-reduce (4.19 MB)`, or `none`.

    Empty if they were not counted.
    """
    numbers = variant.numbers
    if numbers.collectives is None:
        return ""
    parts = []
    for kind, count, size in KINDS:
        if number := getattr(numbers, count):
            parts.append(f"{number} {kind} ({figures.quantity(getattr(numbers, size) or 0, 'B')})")
    return ", ".join(parts) or ("none" if not numbers.collectives else f"{numbers.collectives} others")


def flops(variant: VariantResult) -> str:
    """Return the floating-point operations of one call: `26.8 G`."""
    flops = variant.numbers.flops_per_call
    return "" if flops is None else figures.quantity(flops, "").strip()


def compiling(variant: VariantResult) -> str:
    """Return the median time of compiling as text; empty if it is unknown."""
    time = next((time for time in variant.phases if time.phase == "compile"), None)
    return figures.seconds(float(time.median_seconds)) if time else ""


class _NumberTexts:
    """Format a variant's numbers, with a sign in front of estimates."""

    def __init__(self, variant: VariantResult, compiled: CompiledVariant) -> None:
        self._numbers = variant.numbers
        self._estimates = compiled.estimates

    def size(self, field: str) -> str:
        value = self._numbers.value(field)
        return "" if value is None else f"{self._sign(field)}{figures.quantity(value, 'B') if value else '0 B'}"

    def count(self, field: str) -> str:
        value = self._numbers.value(field)
        return "" if value is None else f"{self._sign(field)}{value:,}"

    def _sign(self, field: str) -> str:
        alias = type(self._numbers).model_fields[field].alias
        return ESTIMATE if alias in self._estimates else ""


def _programs(results: Sequence[Result]) -> Iterator[tuple[str, VariantResult, CompiledVariant | None]]:
    """Yield the target's label, variant and program, for each variant; None if it was not compiled."""
    for result in results:
        compiled = {one.variant: one for one in result.compiled}
        for variant in result.variants:
            yield label(result), variant, compiled.get(variant.name)
