"""Targets by variants: does it fit, and what the compiler made of it. Rows of text that every report shares. Pure.

No time of a program is here, for none is known; what compiling took is said as what it is.
"""

from collections.abc import Iterator, Sequence

from accelbench import figures
from accelbench.api.compiled import CompiledVariant
from accelbench.api.result import Result, VariantResult
from accelbench.report.table import Table, TableColumn, filled

BAR = 12
"""Characters of a bar that stands for the whole of a device's memory."""
NAMES = 2
"""Columns that name what a row is about."""
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
    """Whether the case was compiled for a target, and not measured."""
    return result.case.accelerator.target is not None


def tables(results: Sequence[Result]) -> tuple[Table, ...]:
    """All that have something to say, a row for each target and variant."""
    found = (memory(results), sizes(results), programs(results), fused(results))
    return tuple(table for table in found if table is not None)


def memory(results: Sequence[Result]) -> Table | None:
    """Whether each program fits, and its memory against the device's."""
    columns = (
        TableColumn("target"),
        TableColumn("variant"),
        TableColumn("fits", kind="verdict"),
        TableColumn("memory a device", kind="nowrap"),
        TableColumn("peak", number=True),
        TableColumn("of", number=True),
    )
    rows = []
    for target, variant, compiled in _each(results):
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
                _Shown(variant, compiled).size("peak_bytes"),
                figures.quantity(compiled.device_memory_bytes, "B") if compiled.device_memory_bytes else "",
            )
        )
    return filled("Does it fit", columns, rows)


def sizes(results: Sequence[Result]) -> Table | None:
    """What the memory of one device is for, `reused` being outputs in the memory of arguments; FLOP of all devices."""
    fields = ("argument_bytes", "output_bytes", "aliased_bytes", "temporary_bytes")
    heads = ("arguments", "outputs", "reused", "temporary", "FLOP")
    columns = (TableColumn("target"), TableColumn("variant"), *(TableColumn(head, number=True) for head in heads))
    rows = (
        (target, variant.name, *(_Shown(variant, compiled).size(field) for field in fields), flops(variant))
        for target, variant, compiled in _each(results)
        if compiled is not None
    )
    table = filled("Memory of one device, and floating-point operations of all", columns, rows)
    return table if table and len(table.columns) > NAMES else None


def programs(results: Sequence[Result]) -> Table | None:
    """What each program is made of, and what compiling it took."""
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
            (shown := _Shown(variant, compiled)).count("program_size"),
            shown.count("kernels"),
            shown.count("fusions"),
            collectives(variant),
            *(("", "") if compiled.dispatched else (compiling(variant), shown.size("compile_peak_memory_bytes"))),
        )
        for target, variant, compiled in _each(results)
        if compiled is not None
    )
    return filled("The program, each instruction once, and what compiling took", columns, rows)


def fused(results: Sequence[Result]) -> Table | None:
    """The kernels that the compiler made of most operations, by these; alike ones together."""
    columns = (TableColumn("target"), TableColumn("variant"), TableColumn("what one kernel computes", kind="sentence"))
    rows = (
        (target, variant.name, "; ".join(each.fused)) for target, variant, each in _each(results) if each and each.fused
    )
    table = filled("The largest kernels, by what they compute", columns, rows)
    return table if table and len(table.columns) > NAMES else None


def sentences(*results: Result) -> tuple[str, ...]:
    """The findings, those that are alike for several targets once."""
    said = [sentence for result in results for sentence in _sentences(result)]
    return tuple(dict.fromkeys(said)) or ("Nothing was compiled.",)


def _sentences(result: Result) -> Iterator[str]:
    names = {each.variant for each in result.compiled}
    for each in result.compiled:
        yield f"{each.headline}."
        if each.refused:
            yield f"The compiler says of {each.variant}: {each.refused}"
        if each.devices > 1 and not each.divided:
            why = NOT_DIVIDED_TORCH if each.dispatched else NOT_DIVIDED
            whole = f"each of {each.target}'s {each.devices} devices does all of it"
            yield f"{each.variant} is not divided: {whole}. {why}"
    for variant in result.variants:
        if variant.name not in names and variant.failure:
            yield f"{variant.name} was not compiled: {variant.failure.message.rstrip('.')}."


def footnotes(results: Sequence[Result]) -> tuple[str, ...]:
    """What a reader must know of the figures."""
    found = [each for result in results for each in result.compiled]
    estimated = any(each.estimates and not each.dispatched for each in found)
    dispatched = any(each.dispatched for each in found)
    return (*((ESTIMATES,) if estimated else ()), *((DISPATCHED,) if dispatched else ()), NO_TIME)


def label(result: Result) -> str:
    """The target, and what tells the case from others of the same target."""
    swept = ", ".join(f"{name} {value}" for name, value in result.case.swept.items())
    target = result.case.accelerator.target or ""
    return f"{target}, {swept}" if swept else target


def bar(part: int | None, whole: int | None) -> str:
    """A bar of `BAR` characters, full where all of the memory is held, and with an arrow beyond."""
    if part is None or not whole:
        return ""
    cells = round(BAR * part / whole)
    share = figures.percent(part / whole) if part else "0 %"
    return f"{'█' * min(cells, BAR)}{'░' * (BAR - cells)}{'▶' if cells > BAR else ''} {share}"


def collectives(variant: VariantResult) -> str:
    """By kind, how many and how much they leave on a device: `2 all-reduce (4.19 MB)`; `none`."""
    numbers = variant.numbers
    if numbers.collectives is None:
        return ""
    parts = []
    for kind, count, size in KINDS:
        if found := getattr(numbers, count):
            parts.append(f"{found} {kind} ({figures.quantity(getattr(numbers, size) or 0, 'B')})")
    return ", ".join(parts) or ("none" if not numbers.collectives else f"{numbers.collectives} others")


def flops(variant: VariantResult) -> str:
    """Floating-point operations of one call: `26.8 G`."""
    found = variant.numbers.flops_per_call
    return "" if found is None else figures.quantity(found, "").strip()


def compiling(variant: VariantResult) -> str:
    """Seconds that compiling took."""
    found = next((each for each in variant.phases if each.phase == "compile"), None)
    return figures.seconds(float(found.median_seconds)) if found else ""


class _Shown:
    """Numbers of a variant as they are shown: with a sign where they are estimates."""

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


def _each(results: Sequence[Result]) -> Iterator[tuple[str, VariantResult, CompiledVariant | None]]:
    for result in results:
        compiled = {each.variant: each for each in result.compiled}
        for variant in result.variants:
            yield label(result), variant, compiled.get(variant.name)
