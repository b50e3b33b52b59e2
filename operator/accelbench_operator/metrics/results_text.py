"""Cache the text of results in one format, and write only what has changed.

Stored results never change. Writing thousands of series takes a second of CPU time, so results are split into
blocks, and each block keeps its text. The text has 14 MB at 2,000 cases of series.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.registry import Collector

from accelbench_operator.metrics.families import Families, Family, result_families, series_labels
from accelbench_operator.runs.summary import Summary

OPENMETRICS_END = b"# EOF\n"
"""End of a text in the OpenMetrics format."""
BLOCK_COUNT = 32
"""Number of blocks, each with the results of some series."""

Encode = Callable[[Collector], bytes]


@dataclass(frozen=True)
class TextBlock:
    """Store some results and, for each metric, the lines of text that these results have."""

    results: tuple[Summary, ...] = ()
    lines: tuple[bytes, ...] = ()


class ResultsText:
    """Write results, and keep the text for the next scrape."""

    def __init__(self, encode: Encode) -> None:
        """Prepare to write results with `encode`, the function for the format."""
        self._encode = encode
        # Without results, a metric's text is only its head (HELP and TYPE).
        self._heads = tuple(self._metric_text(family) for family in result_families(()))
        self._cache: tuple[Sequence[Summary], Mapping[int, TextBlock]] = ((), {})
        """The results of the last scrape, and their blocks by number."""

    def write(self, summaries: Sequence[Summary]) -> "MetricTexts":
        """Return the metrics of these results as text. Blocks of unchanged results come from a cache."""
        # Scrapes are written in threads: read both values together, and replace both together.
        cached_summaries, blocks = self._cache
        # Stored results never change, so the same sequence needs no comparison.
        if summaries is not cached_summaries:
            new_blocks = {}
            for block_number, results in _split_into_blocks(summaries):
                new_blocks[block_number] = self._cached_or_new_block(results, blocks.get(block_number))
            blocks = new_blocks
            self._cache = summaries, blocks
        return MetricTexts(self._heads, tuple(blocks.values()))

    def _cached_or_new_block(self, results: tuple[Summary, ...], cached_block: TextBlock | None) -> TextBlock:
        """Return `cached_block` if it has the same results, else a new block."""
        if cached_block is not None and cached_block.results == results:
            return cached_block
        lines = []
        for family, head in zip(result_families(results), self._heads, strict=True):
            samples = self._metric_text(family).removeprefix(head)
            lines.append(samples)
        return TextBlock(results, tuple(lines))

    def _metric_text(self, family: Family) -> bytes:
        """Return one metric as text: HELP and TYPE, then its samples."""
        text = self._encode(Families([family]))
        # The end mark of OpenMetrics belongs after the last metric only.
        return text.removesuffix(OPENMETRICS_END)


@dataclass(frozen=True)
class MetricTexts:
    """Store, for each metric, its head (HELP and TYPE) and the lines of every block."""

    heads: tuple[bytes, ...]
    blocks: tuple[TextBlock, ...]

    @property
    def without_results(self) -> "MetricTexts":
        """Return a copy without samples: only the HELP and TYPE of each metric."""
        return MetricTexts(self.heads, ())

    def __iter__(self) -> Iterator[bytes]:
        """Yield the text of each metric: HELP and TYPE, then its samples in all blocks."""
        for metric_index, head in enumerate(self.heads):
            samples_of_blocks = [block.lines[metric_index] for block in self.blocks]
            yield b"".join([head, *samples_of_blocks])


def _split_into_blocks(summaries: Iterable[Summary]) -> Iterator[tuple[int, tuple[Summary, ...]]]:
    """Split results into blocks, whose text is cached; yield the number and the results of each block.

    Results of the same series and case share a block: duplicate samples are removed only within a block.
    """
    results_by_block: defaultdict[int, list[Summary]] = defaultdict(list)
    for result in summaries:
        block_number = hash(series_labels(result)) % BLOCK_COUNT
        results_by_block[block_number].append(result)
    for block_number, results in sorted(results_by_block.items()):
        yield block_number, tuple(results)
