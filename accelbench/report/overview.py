"""Several cases of one run at a glance: the finding over all of them, and a row for each. Pure."""

from collections import Counter
from collections.abc import Sequence

from accelbench import figures
from accelbench.api.result import Comparison, Result
from accelbench.report import targets, view


def sentences(results: Sequence[Result]) -> tuple[str, ...]:
    """One to three sentences over all cases; of a single case, that case's own."""
    if results and all(map(targets.is_compiled, results)):
        return tuple(f"{each.headline}." for result in results for each in result.compiled)[: view.SENTENCES]
    if len(results) == 1:
        return view.sentences(results[0])
    pairs = [(result, comparison) for result in results for comparison in result.comparisons]
    if not pairs:
        return (
            ("No case has a result.",) if not results else (f"{len(results)} cases, and nothing to compare in them.",)
        )
    counts = Counter(_finding(comparison) for _, comparison in pairs)
    said = ", ".join(f"{count} {finding}" for finding, count in counts.most_common())
    first = f"{len(pairs)} comparisons in {len(results)} cases: {said}."
    ranked = sorted((pair for pair in pairs if pair[1].verdict), key=lambda pair: float(pair[1].speedup or 0))
    if not ranked:
        return (first,)
    best, worst = ranked[-1], ranked[0]
    shown = [best] if best is worst else [best, worst]
    return (first, *(f"With {case_label(result)}: {comparison.sentence}" for result, comparison in shown))


def case_label(result: Result) -> str:
    """What tells this case from the run's others: `size 512`."""
    swept = result.case.swept or result.case.parameters
    return ", ".join(f"{name} {value}" for name, value in swept.items()) or result.case.name


def table(results: Sequence[Result]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]] | None:
    """Header and rows: a row a case, a column a compared variant; None for fewer than two cases."""
    if len(results) < 2:  # noqa: PLR2004 - one case is its own overview
        return None
    variants = list(dict.fromkeys(comparison.variant for result in results for comparison in result.comparisons))
    rows = []
    for result in results:
        cells = {comparison.variant: _cell(comparison) for comparison in result.comparisons}
        rows.append((case_label(result), *(cells.get(variant, "") for variant in variants)))
    return ("case", *variants), tuple(rows)


def _cell(comparison: Comparison) -> str:
    speedup = f"{figures.speedup(float(comparison.speedup))} " if comparison.speedup else ""
    return f"{speedup}{_finding(comparison)}"


def _finding(comparison: Comparison) -> str:
    if comparison.noisy:
        return "noisy"
    return "invalid" if comparison.invalid else comparison.verdict or "not compared"
