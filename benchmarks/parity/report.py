"""Print what was measured as Markdown."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from accelbench.api.case import Precision
from benchmarks.parity import cost, shares
from benchmarks.parity.corpus import PROGRAMS
from benchmarks.parity.errors import OFF_BY_ONE, REACHES, SIZES
from benchmarks.parity.measure import Cost, Row
from benchmarks.parity.program import PRECISIONS
from benchmarks.parity.shares import Predicate, share
from benchmarks.real import environment

NOTHING = "-"
MANY_OUTPUTS = 20
"""Minimum number of outputs whose share is printed."""


def write(rows: Sequence[Row], costs: Sequence[Cost], seconds: float) -> None:
    """Print the report as Markdown; `seconds` is the processor time that measuring took."""
    seeds = sorted({row.output.seed for row in rows})
    faults = sum(len(program.faults) for program in PROGRAMS)
    less_exact = sum(program.less_exact for program in PROGRAMS)
    today = datetime.now(UTC).date().isoformat()
    print("# What parity misses, and what it refuses\n")
    print(f"`python -m benchmarks.parity`, {today}, on {environment()}\n")
    print(
        f"{len(PROGRAMS)} programs, each written in NumPy (the reference), in JAX (jitted) and in PyTorch (eager),\n"
        f"and {faults} wrong versions of them, on inputs of {len(seeds)} seeds. {less_exact} of the programs have an\n"
        "algorithm that is known to round more than the reference's. All outputs are of real runs on a processor.\n"
        "*Before* is the rule of commit 1e6de44, one tolerance for most of an array; *now* is\n"
        "[the rule of today](../method/parity-by-element.md). *Without a reference*, the baseline's own program in\n"
        "PyTorch replaces it. Shares are in per cent: the median over the seeds, and their range if they differ.\n"
    )
    _write_right(rows)
    _write_injected(rows)
    _write_summary(rows)
    _write_faults(rows)
    cost.write(costs)
    print(f"\nTook {seconds:.0f} s of one processor.")


def _write_right(rows: Sequence[Row]) -> None:
    """Print how many right outputs are refused."""
    print("## Right outputs\n")
    heads = "refused before | refused now | untested now | without a reference: refused | untested"
    print(f"| type | outputs | {heads} |\n|---|---|---|---|---|---|---|")
    right = [row for row in rows if row.output.kind == "right"]
    for precision in PRECISIONS:
        for less_exact in (False, True):
            here = [row for row in right if (row.output.precision, row.output.less_exact) == (precision, less_exact)]
            if here:
                cells = [
                    _count(here, has_property)
                    for has_property in (
                        lambda row: row.before,
                        shares.is_refused_now,
                        shares.is_untested_now,
                        shares.is_refused_own,
                        shares.is_untested_own,
                    )
                ]
                name = f"{precision}, less exact algorithms" if less_exact else precision
                print(f"| {name} | {len(here)} | {' | '.join(cells)} |")
    passed = sum(row.now.less_exact for row in right)
    print(f"\nThe counts are of all seeds. {passed} of the outputs that pass now pass as less exact algorithms.\n")
    _write_list("Refused now", right, shares.is_refused_now, lambda row: row.now.detail)
    _write_list("Refused without a reference", right, shares.is_refused_own, lambda row: row.own.detail)
    print("Untested now: " + _names(filter(shares.is_untested_now, right)) + ".\n")
    print("Refused before: " + _names(row for row in right if row.before) + ".\n")


def _count(rows: Sequence[Row], has_property: Predicate) -> str:
    """Return how many rows have a property, and the range of that number over seeds."""
    by_seed: dict[int, int] = defaultdict(int)
    for row in rows:
        by_seed[row.output.seed] += has_property(row)
    low, high = min(by_seed.values()), max(by_seed.values())
    return f"{sum(by_seed.values())}" + (f" ({low} to {high} a seed)" if low < high else "")


def _write_list(title: str, rows: Sequence[Row], has_property: Predicate, detail: Callable[[Row], str]) -> None:
    """Print each program with a row that has the property, with the reading of one such row."""
    grouped: dict[tuple[str, Precision, str], list[Row]] = defaultdict(list)
    for row in filter(has_property, rows):
        grouped[row.output.program, row.output.precision, row.output.name].append(row)
    if not grouped:
        print(f"{title}: nothing.\n")
        return
    print(f"{title}:\n")
    print("| program | type | framework | seeds | reading of one |\n|---|---|---|---|---|")
    for (program, precision, form), group in grouped.items():
        print(f"| {program} | {precision} | {form} | {len(group)} | {detail(group[0])} |")
    print()


def _names(rows: Iterable[Row]) -> str:
    """List the programs of the rows, with the types in which they occur."""
    precisions: dict[str, set[Precision]] = defaultdict(set)
    for row in rows:
        precisions[row.output.program].add(row.output.precision)
    if not precisions:
        return "nothing"
    texts = []
    for name, program_precisions in precisions.items():
        in_order = [precision for precision in PRECISIONS if precision in program_precisions]
        texts.append(f"{name} ({', '.join(in_order)})")
    return "; ".join(texts)


def _write_injected(rows: Sequence[Row]) -> None:
    """Print the shares of missed errors by their size."""
    injected = [row for row in rows if row.output.kind == "injected"]
    refused = {_key(row) for row in rows if row.output.kind == "right" and row.before}
    print("## Errors put into right outputs\n")
    print("![Shares of missed errors by their size](parity.svg)\n")
    print(
        "Elements of the outputs are multiplied by 1 ± the error, and rounded to the type; errors that this removes\n"
        "do not count. Missed: the check `parity` passes. Before, now, and now without a reference; last, how often\n"
        "parity is untested now.\n"
    )
    rules = (shares.passes_before, shares.passes_now, shares.passes_own)
    for precision in PRECISIONS:
        print(f"### {precision}\n")
        heads = [f"{reach}: {rule}" for reach in REACHES for rule in ("before", "now", "no reference")]
        print(f"| error | {' | '.join(heads)} | untested |\n|---{'|---' * (len(heads) + 1)}|")
        for size in (*SIZES, OFF_BY_ONE):
            here = [row for row in injected if (row.output.precision, row.output.size) == (precision, size)]
            if len(here) < MANY_OUTPUTS:
                continue
            cells = [
                _share([row for row in here if row.output.reach == reach], misses)
                for reach in REACHES
                for misses in rules
            ]
            name = "an integer off by one" if size == OFF_BY_ONE else f"{size:.0e}"
            print(f"| {name} | {' | '.join(cells)} | {_share(here, shares.is_untested_now)} |")
        caught = [row for row in injected if row.output.precision == precision and row.before]
        worthless = sum(_key(row) in refused for row in caught) / max(1, len(caught))
        print(
            f"\n{100 * worthless:.0f} % of the errors that the rule found before were in outputs that it refused\n"
            "without an error, too.\n"
        )


def _key(row: Row) -> tuple[str, Precision, int, str]:
    """Return a key for the right output that a row is about or that was changed by errors."""
    return row.output.program, row.output.precision, row.output.seed, row.output.name


def _share(rows: Sequence[Row], has_property: Predicate) -> str:
    """Return the share of rows with a property as a table cell; `NOTHING` with too few rows."""
    row_share = share(rows, has_property)
    return str(row_share) if row_share and row_share.count >= MANY_OUTPUTS else NOTHING


def _write_summary(rows: Sequence[Row]) -> None:
    """Print the shares of faults that are missed."""
    print("## Faults written into programs\n")
    print(
        "Missed: the rule before; the check `parity` now; and no check that fails, `formula` in float64 included.\n"
        "Faults that leave the output bit for bit as it was do not count.\n"
    )
    heads = "before | parity | parity and formula | untested | no reference: parity | parity and formula"
    print(f"| type | outputs | {heads} |\n|---|---|---|---|---|---|---|---|")
    for precision in PRECISIONS:
        here = [row for row in _written(rows) if row.output.precision == precision]
        cells = [
            _share(here, has_property)
            for has_property in (
                shares.passes_before,
                shares.passes_now,
                shares.passes_all_now,
                shares.is_untested_now,
                shares.passes_own,
                shares.passes_all_own,
            )
        ]
        print(f"| {precision} | {len(here)} | {' | '.join(cells)} |")
    print()


def _written(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of wrong programs whose output differs from the right one."""
    return [row for row in rows if row.output.kind == "written" and not row.output.unchanged]


def _write_faults(rows: Sequence[Row]) -> None:
    """Print for each fault how many of its outputs pass by each rule."""
    grouped: dict[tuple[str, str], dict[Precision, list[Row]]] = defaultdict(lambda: defaultdict(list))
    reaches = {}
    for row in rows:
        if row.output.kind == "written":
            key = row.output.program, row.output.name
            reaches[key] = row.output.reach
            if not row.output.unchanged:
                grouped[key][row.output.precision].append(row)
            else:
                grouped[key][row.output.precision] += []
    print("Each fault: how many of its outputs pass before, by `parity` now, and by both checks now, of how many.\n")
    print(f"| program | fault | wrong outputs | {' | '.join(PRECISIONS)} |\n|---|---|---|---|---|---|")
    for key, rows_by_precision in grouped.items():
        cells = [_passes(rows_by_precision[precision]) for precision in PRECISIONS]
        print(f"| {' | '.join(key)} | {reaches[key]} | {' | '.join(cells)} |")
    print()


def _passes(rows: Sequence[Row]) -> str:
    """Return how many outputs pass by each rule."""
    if not rows:
        return NOTHING
    counts = [sum(map(passes, rows)) for passes in (shares.passes_before, shares.passes_now, shares.passes_all_now)]
    return f"{', '.join(map(str, counts))} of {len(rows)}"
