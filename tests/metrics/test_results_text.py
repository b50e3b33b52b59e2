"""The text about results is cached invisibly, and only changes are written again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from accelbench_operator.metrics import families as metrics
from accelbench_operator.metrics import results_text
from accelbench_operator.metrics.results_text import ResultsText
from metrics.documents import failed, faster, invalid, snapshot
from tiers import on_a_push

if TYPE_CHECKING:
    from accelbench_operator.runs.summary import Summary

FORMATS = ("", "application/openmetrics-text;version=1.0.0")
KINDS = (faster, invalid, failed)


def shown(*results: tuple[str, int, int]) -> tuple[Summary, ...]:
    """Of each namespace, number and kind a result."""
    return snapshot(
        *((namespace, KINDS[kind](run=f"run-{n}", series=f"series-{n}")) for namespace, n, kind in results)
    ).results


def text(written: ResultsText, results: tuple[Summary, ...]) -> bytes:
    return b"".join(written.write(results))


@pytest.mark.slow
@pytest.mark.parametrize("accept", on_a_push(FORMATS, lambda accept: accept != ""))
@given(
    st.lists(
        st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 40)), st.integers(0, 2), max_size=8), max_size=4
    )
)
def test_the_cached_text_equals_a_newly_written_one(accept: str, scrapes: list[dict[tuple[str, int], int]]) -> None:
    encode, _ = choose_encoder(accept)
    kept = ResultsText(encode)
    for scrape in scrapes:
        results = shown(*((*key, kind) for key, kind in scrape.items()))
        assert text(kept, results) == text(ResultsText(encode), results)


def test_each_result_is_exported_once_and_every_metric_has_one_header() -> None:
    encode, _ = choose_encoder(FORMATS[1])
    results = shown(*(("a", number, 0) for number in range(100)))
    families = list(text_string_to_metric_families(text(ResultsText(encode), results).decode() + "# EOF\n"))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    (valid,) = (family for family in families if family.name == "accelbench_result_valid")
    assert sorted(sample.labels["series"] for sample in valid.samples) == sorted(f"series-{n}" for n in range(100))


def test_a_new_result_rewrites_only_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def counted(results: tuple[Summary, ...]) -> object:
        written.append(len(results))
        return metrics.result_families(results)

    encode, _ = choose_encoder("")
    kept = ResultsText(encode)
    before = shown(*(("a", number, 0) for number in range(640)))
    text(kept, before)
    monkeypatch.setattr(results_text, "result_families", counted)
    text(kept, before)
    assert written == []
    text(kept, (*shown(("a", 0, 1)), *before[1:]))
    assert len(written) == 1
    assert written[0] < 640 / 8
