"""The text about results in one format, made anew only where there is another result.

Results never change once they are stored. Of thousands of series their text takes a second of processor time, so they
are split into blocks, and each block keeps its text. All of it has 14 MB at 2,000 cases of series.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.registry import Collector

from accelbench_operator.metrics.families import Families, Family, of_results, series_of
from accelbench_operator.runs.summary import Summary

END = b"# EOF\n"
"""Of a text in the OpenMetrics format; nothing may follow it."""
BLOCKS = 32

Encode = Callable[[Collector], bytes]


@dataclass(frozen=True)
class Block:
    """Results, and the lines that tell of them: by metric."""

    results: tuple[Summary, ...] = ()
    lines: tuple[bytes, ...] = ()


class ResultsText:
    """Keeps the text of the results that were shown last."""

    def __init__(self, encode: Encode) -> None:
        """`encode` is the client's, for the format."""
        self._encode = encode
        self._heads = tuple(map(self._text, of_results(())))
        self._kept: tuple[Sequence[Summary], Mapping[int, Block]] = ((), {})

    def of(self, shown: Sequence[Summary]) -> "MetricTexts":
        """The text of these."""
        # Scrapes are written in threads: both are read at once, and replaced at once.
        last, blocks = self._kept
        if shown is not last:
            blocks = {number: self._block(blocks.get(number), results) for number, results in _split(shown)}
            self._kept = shown, blocks
        return MetricTexts(self._heads, tuple(blocks.values()))

    def _block(self, kept: Block | None, results: tuple[Summary, ...]) -> Block:
        if kept is not None and kept.results == results:
            return kept
        families = zip(of_results(results), self._heads, strict=True)
        return Block(results, tuple(self._text(each).removeprefix(head) for each, head in families))

    def _text(self, family: Family) -> bytes:
        return self._encode(Families([family])).removesuffix(END)


@dataclass(frozen=True)
class MetricTexts:
    """Of each metric its head (HELP and TYPE), and the lines of every block."""

    heads: tuple[bytes, ...]
    blocks: tuple[Block, ...]

    @property
    def heads_alone(self) -> "MetricTexts":
        """The same metrics without a result."""
        return MetricTexts(self.heads, ())

    def __iter__(self) -> Iterator[bytes]:
        """Their texts, in order."""
        for number, head in enumerate(self.heads):
            yield b"".join((head, *(block.lines[number] for block in self.blocks)))


def _split(shown: Iterable[Summary]) -> Iterator[tuple[int, tuple[Summary, ...]]]:
    """Split by series, so that a result stays in its block, and two that could give the same sample are in one."""
    blocks: defaultdict[int, list[Summary]] = defaultdict(list)
    for result in shown:
        blocks[hash(series_of(result)) % BLOCKS].append(result)
    for number, results in sorted(blocks.items()):
        yield number, tuple(results)
