"""Build the tables of programs that were compiled for targets: whether they fit, and what they consist of. Pure.

The programs did not run, so the only time is that of compiling. A number that a compiler without the device can only
estimate has the sign `≈`. A program is divided if it is sharded over the devices of its target.
"""

from collections.abc import Iterator, Sequence

from accelbench import figures
from accelbench.api.compiled import CompiledVariant
from accelbench.api.result import Result, VariantResult
from accelbench.report.table import Table, TableColumn, make_table

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
COLLECTIVES = (
    ("all-reduce", "all_reduces", "all_reduce_bytes"),
    ("all-gather", "all_gathers", "all_gather_bytes"),
    ("reduce-scatter", "reduce_scatters", "reduce_scatter_bytes"),
    ("all-to-all", "all_to_alls", "all_to_all_bytes"),
    ("permute", "collective_permutes", "collective_permute_bytes"),
)
"""Name of each collective operation, and the fields with its number of calls and its bytes."""


def is_compile_only(result: Result) -> bool:
    """Return True if the case was compiled for a target instead of measured."""
    return result.case.accelerator.target is not None


def tables(results: Sequence[Result]) -> tuple[Table, ...]:
    """Return the tables of a report on compiled programs, without empty ones."""
    all_tables = (memory(results), sizes(results), programs(results), largest_kernels(results))
    return tuple(table for table in all_tables if table is not None)


def memory(results: Sequence[Result]) -> Table | None:
    """Return a table of each program's peak memory, and whether the program fits into the memory of its target.

    None without programs.
    """
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
    return make_table("Does it fit", columns, rows)


def sizes(results: Sequence[Result]) -> Table | None:
    """Return a table of what each program keeps in memory, and of its floating-point operations; None if unknown.

    The column `reused` is the size of outputs that share memory with arguments.
    """
    fields = ("argument_bytes", "output_bytes", "aliased_bytes", "temporary_bytes")
    headings = ("arguments", "outputs", "reused", "temporary", "FLOP")
    columns = [TableColumn("target"), TableColumn("variant")]
    columns += [TableColumn(heading, number=True) for heading in headings]
    rows = []
    for target, variant, compiled in _programs(results):
        if compiled is not None:
            texts = _NumberTexts(variant, compiled)
            rows.append((target, variant.name, *map(texts.size, fields), flops(variant)))
    table = make_table("Memory of one device, and floating-point operations of all", columns, rows)
    # If no number is known, only the columns target and variant are left.
    return table if table and len(table.columns) > KEY_COLUMNS else None


def programs(results: Sequence[Result]) -> Table | None:
    """Return a table of what each program consists of, and of the time and memory that compiling took.

    None without programs.
    """
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
    rows = []
    for target, variant, compiled in _programs(results):
        if compiled is None:
            continue
        texts = _NumberTexts(variant, compiled)
        contents = (texts.count("program_size"), texts.count("kernels"), texts.count("fusions"), collectives(variant))
        compiling_costs = (compile_time(variant), texts.size("compile_peak_memory_bytes"))
        if compiled.dispatched:  # PyTorch's operations are counted without compiling, so there is no cost to show
            compiling_costs = ("", "")
        rows.append((target, variant.name, *contents, *compiling_costs))
    return make_table("The program, each instruction once, and what compiling took", columns, rows)


def largest_kernels(results: Sequence[Result]) -> Table | None:
    """Return a table of each program's largest fused kernels: the operations that each computes; None without any."""
    columns = (TableColumn("target"), TableColumn("variant"), TableColumn("what one kernel computes", kind="sentence"))
    rows = (
        (target, variant.name, "; ".join(compiled.fused))
        for target, variant, compiled in _programs(results)
        if compiled and compiled.fused
    )
    return make_table("The largest kernels, by what they compute", columns, rows)


def sentences(*results: Result) -> tuple[str, ...]:
    """Return sentences about the compiled programs of these cases; a repeated sentence only once."""
    all_sentences = [sentence for result in results for sentence in _sentences(result)]
    return tuple(dict.fromkeys(all_sentences)) or ("Nothing was compiled.",)


def _sentences(result: Result) -> Iterator[str]:
    """Yield sentences about each compiled program of a case, and about each variant that could not be compiled."""
    compiled_variants = {compiled.variant for compiled in result.compiled}
    for compiled in result.compiled:
        yield f"{compiled.headline}."
        if compiled.refused:
            yield f"The compiler's message for {compiled.variant}: {compiled.refused}"
        if compiled.devices > 1 and not compiled.divided:
            reason = NOT_DIVIDED_TORCH if compiled.dispatched else NOT_DIVIDED
            consequence = f"each of {compiled.target}'s {compiled.devices} devices does all of it"
            yield f"{compiled.variant} is not divided: {consequence}. {reason}"
    for variant in result.variants:
        if variant.name not in compiled_variants and variant.failure:
            yield f"{variant.name} was not compiled: {variant.failure.message.rstrip('.')}."


def footnotes(results: Sequence[Result]) -> tuple[str, ...]:
    """Return notes on compiled programs: how numbers were estimated, and that nothing was timed."""
    compiled_variants = [compiled for result in results for compiled in result.compiled]
    notes = []
    # DISPATCHED also says what an estimate is for the programs that PyTorch dispatched.
    if any(compiled.estimates and not compiled.dispatched for compiled in compiled_variants):
        notes.append(ESTIMATES)
    if any(compiled.dispatched for compiled in compiled_variants):
        notes.append(DISPATCHED)
    return (*notes, NO_TIME)


def case_label(result: Result) -> str:
    """Label a compiled case with its target and its swept parameters."""
    swept = ", ".join(f"{name} {value}" for name, value in result.case.swept.items())
    target = result.case.accelerator.target or ""
    return f"{target}, {swept}" if swept else target


def bar(used_bytes: int | None, device_bytes: int | None) -> str:
    """Draw the used share of a device's memory: `██████░░░░░░ 50 %`, `████████████▶ 150 %`; empty if unknown."""
    if used_bytes is None or not device_bytes:
        return ""
    filled_cells = round(BAR_WIDTH * used_bytes / device_bytes)
    share = figures.percent(used_bytes / device_bytes) if used_bytes else "0 %"  # not `0.0 %`
    if filled_cells > BAR_WIDTH:
        return f"{'█' * BAR_WIDTH}▶ {share}"
    return f"{'█' * filled_cells}{'░' * (BAR_WIDTH - filled_cells)} {share}"


def collectives(variant: VariantResult) -> str:
    """List a program's collective operations with their bytes: `2 all-reduce (4.19 MB)`; empty if not counted.

    Operations of other kinds than `COLLECTIVES` are listed only if there are no operations of these kinds.
    """
    numbers = variant.numbers
    if numbers.collectives is None:
        return ""
    texts = []
    for name, count_field, bytes_field in COLLECTIVES:
        if count := getattr(numbers, count_field):
            texts.append(f"{count} {name} ({figures.quantity(getattr(numbers, bytes_field) or 0, 'B')})")
    if texts:
        return ", ".join(texts)
    return f"{numbers.collectives} others" if numbers.collectives else "none"


def flops(variant: VariantResult) -> str:
    """Format the number of floating-point operations of one call: `26.8 G`; empty if not counted."""
    flops_per_call = variant.numbers.flops_per_call
    if flops_per_call is None:
        return ""
    return figures.quantity(flops_per_call, "").strip()  # without a prefix, below 1,000, a space is at the end


def compile_time(variant: VariantResult) -> str:
    """Format the median time of a variant's compile phase; empty if the variant did not compile."""
    phase_time = next((time for time in variant.phases if time.phase == "compile"), None)
    return figures.seconds(float(phase_time.median_seconds)) if phase_time else ""


class _NumberTexts:
    """Format a variant's numbers, with a sign in front of estimates."""

    def __init__(self, variant: VariantResult, compiled: CompiledVariant) -> None:
        """Keep the variant's numbers, and the names of those that are only estimates."""
        self._numbers = variant.numbers
        self._estimates = compiled.estimates

    def size(self, field: str) -> str:
        """Format the number of bytes in `field`, after `≈` if it is an estimate; empty if it is unknown."""
        value = self._numbers.value(field)
        if value is None:
            return ""
        return f"{self._estimate_sign(field)}{figures.quantity(value, 'B')}"

    def count(self, field: str) -> str:
        """Format the count in `field`, after `≈` if it is an estimate; empty if it is unknown."""
        value = self._numbers.value(field)
        return "" if value is None else f"{self._estimate_sign(field)}{value:,}"

    def _estimate_sign(self, field: str) -> str:
        """Return `≈` if the number in `field` is an estimate, else an empty text."""
        json_name = type(self._numbers).model_fields[field].alias  # the result lists estimates by their JSON names
        return ESTIMATE if json_name in self._estimates else ""


def _programs(results: Sequence[Result]) -> Iterator[tuple[str, VariantResult, CompiledVariant | None]]:
    """Yield (label of the case, variant, compiled program of the variant) for each variant of each case.

    The program is None if the variant was not compiled.
    """
    for result in results:
        compiled_by_variant = {compiled.variant: compiled for compiled in result.compiled}
        for variant in result.variants:
            yield case_label(result), variant, compiled_by_variant.get(variant.name)
