from accelbench.api.result import Result
from accelbench.report import html, view
from report import sample


def case(size: int, speedup: str = "2.041") -> Result:
    return sample.result(
        case=sample.case(swept={"size": size}),
        comparisons=(
            sample.comparison("jax/jit", "faster", speedup, "1.9", "99"),
            sample.comparison("jax/op-by-op", "inconclusive", "0.967", "0.951", "0.984"),
        ),
    )


def test_the_summary_of_one_case_is_that_of_the_case() -> None:
    assert html.overview_sentences([sample.result()]) == view.sentences(sample.result())
    assert html.overview_table([sample.result()]) is None


def test_the_summary_of_several_cases_has_their_number_and_the_extremes() -> None:
    assert html.overview_sentences([case(256), case(512, "4")]) == (
        "4 comparisons in 2 cases: 2 faster, 2 inconclusive.",
        "With size 512: jax/jit is faster: 4x (1.9 to 99).",
        "With size 256: jax/op-by-op is inconclusive: 0.967x (0.951 to 0.984).",
    )


def test_a_case_whose_comparison_is_invalid_has_no_number_in_the_table() -> None:
    broken = sample.result(case=sample.case(swept={"size": 64}), comparisons=(sample.invalid("jax/jit", "parity"),))
    table = html.overview_table([case(256), broken])
    assert table is not None
    assert table.rows == (("size 256", "2.04x faster", "0.967x inconclusive"), ("size 64", "invalid", ""))


def test_a_run_without_any_result_is_reported_as_such() -> None:
    assert html.overview_sentences([]) == ("No case has a result.",)
