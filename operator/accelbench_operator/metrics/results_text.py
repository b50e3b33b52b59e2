"""Cache the text of results in one format, and write only what has changed.

Stored results never change. Writing thousands of series takes a second of processor time, so results are split into
blocks, and each block keeps its text. The text has 14 MB at 2,000 cases of series.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.registry import Collector

from accelbench_operator.metrics.families import Families, Family, result_families, series_of
from accelbench_operator.runs.summary import Summary

END = b"# EOF\n"
"""End of a text in the OpenMetrics format."""
BLOCKS = 32
"""Number of blocks, each with the results of some series."""

Encode = Callable[[Collector], bytes]


@dataclass(frozen=True)
class TextBlock:
    """Hold some results and, for each metric, their lines."""

    results: tuple[Summary, ...] = ()
    lines: tuple[bytes, ...] = ()


class ResultsText:
    """Write results, and keep the text for the next scrape."""

    def __init__(self, encode: Encode) -> None:
        """Use `encode`, the Prometheus client's function for the format."""
        self._encode = encode
        self._heads = tuple(map(self._text, result_families(())))
        self._cache: tuple[Sequence[Summary], Mapping[int, TextBlock]] = ((), {})

    def of(self, summaries: Sequence[Summary]) -> "MetricTexts":
        """Return the text of these results; only blocks that have changed are written again."""
        # Scrapes are written in threads: read both together, and replace both together.
        last, blocks = self._cache
        if summaries is not last:
            blocks = {
                number: self._block(blocks.get(number), results) for number, results in _split_by_series(summaries)
            }
            self._cache = summaries, blocks
        return MetricTexts(self._heads, tuple(blocks.values()))

    def _block(self, cached: TextBlock | None, results: tuple[Summary, ...]) -> TextBlock:
        """Return the block of these results, the cached one if it has the same."""
        if cached is not None and cached.results == results:
            return cached
        families = zip(result_families(results), self._heads, strict=True)
        return TextBlock(results, tuple(self._text(family).removeprefix(head) for family, head in families))

    def _text(self, family: Family) -> bytes:
        """Return the text of one metric with its head."""
        return self._encode(Families([family])).removesuffix(END)


@dataclass(frozen=True)
class MetricTexts:
    """Hold, for each metric, its head (HELP and TYPE) and the lines of every block."""

    heads: tuple[bytes, ...]
    blocks: tuple[TextBlock, ...]

    @property
    def without_results(self) -> "MetricTexts":
        """Return the heads of the metrics, without samples."""
        return MetricTexts(self.heads, ())

    def __iter__(self) -> Iterator[bytes]:
        """Yield the text of each metric."""
        for number, head in enumerate(self.heads):
            yield b"".join((head, *(block.lines[number] for block in self.blocks)))


def _split_by_series(summaries: Iterable[Summary]) -> Iterator[tuple[int, tuple[Summary, ...]]]:
    """Split by series, so that results which could give the same sample are in the same block."""
    blocks: defaultdict[int, list[Summary]] = defaultdict(list)
    for result in summaries:
        blocks[hash(series_of(result)) % BLOCKS].append(result)
    for number, results in sorted(blocks.items()):
        yield number, tuple(results)
