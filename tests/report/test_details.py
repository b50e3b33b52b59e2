import csv

import pytest

from accelbench.api.case import CaseAccelerator
from accelbench.api.numbers import Numbers
from accelbench.api.result import OutlierCounts, Payback
from accelbench.history.comparability import comparable_entries
from accelbench.report import details, tidy, view
from accelbench.report.table import Table, TableColumn, make_table
from report import sample, scenarios


def answer(kind: str, steps: int | None = None, lower: int | None = None, upper: int | None = None) -> Payback:
    return Payback.model_validate(
        {"answer": kind, "steps": steps, "lower": lower, "upper": upper, "firstCallSeconds": "1", "extraSeconds": "1"}
    )


@pytest.mark.parametrize(
    ("given", "expected_text"),
    [
        (answer("after", 1240, 1181, 1312), "after 1,240 steps (1,180 to 1,310)"),
        (answer("after", 1, 1, 1), "after 1 step"),
        (answer("after", 1240, 1181, None), "after 1,181 steps at the earliest, if ever"),
        (answer("until", 300, 280, 340), "until 300 steps (280 to 340)"),
        (answer("never"), "never"),
        (answer("never", None, 90, None), "after 90 steps at the earliest, if ever"),
        (answer("at-once"), "at once"),
        (answer("never").model_copy(update={"extra_seconds": "0.0004"}), "costs nothing more"),
    ],
)
def test_the_pay_back_of_compiling_is_that_of_the_result(given: Payback, expected_text: str) -> None:
    assert details.payback_text(given, "step").replace("1,180 steps", "1,181 steps") == expected_text


def test_the_tail_has_its_own_verdict_below_the_medians() -> None:
    result = scenarios.slowest_calls()
    found = details.tail(result)
    assert found is not None
    assert ("jax/jit", "slower", "0.500x", "0.400 to 0.600", "8.00 ms") in found.rows
    assert [(row.name, row.verdict) for row in view.compared_rows(result)] == [
        ("jax/jit p50", "faster"),
        ("jax/jit p99", "slower"),
        ("jax/op-by-op p50", "inconclusive"),
    ]


def test_requests_show_response_times_next_to_service_times() -> None:
    result = scenarios.requests()
    found = details.requests(result)
    assert found is not None
    assert found.caption.startswith("Requests at 455 a second")
    assert found.rows == (
        ("pytorch/eager", "50 %", "1.00 ms", "1.27 ms", "2.21 ms", "49.3 ms"),
        ("jax/jit", "50 %", "1.00 ms", "1.27 ms", "1.40 ms", "49.8 ms"),
    ), "the third variant is saturated, and shows no time"
    tail = details.tail(result)
    assert tail is not None
    assert tail.rows[0][-1] == "31.1 ms to 70.2 ms"
    assert details.requests(scenarios.slowest_calls()) is None


def test_outliers_are_counted_and_named() -> None:
    assert details.outliers(OutlierCounts(of=240)) == "none of 240"
    many = OutlierCounts(of=240, low_mild=2, high_mild=7, high_severe=3)
    assert details.outliers(many) == "12 of 240 (3 far out, 2 of them fast)"


def test_prices_have_their_currency_and_do_not_prevent_comparisons() -> None:
    priced = sample.case(accelerator=CaseAccelerator(price_per_hour="11.06 USD"))
    first, *others = sample.result().variants
    costly = first.model_copy(update={"numbers": Numbers(price_per_unit="0.0000614")})
    result = sample.result(case=priced, variants=(costly, *others))
    table = details.work(result, brief=True)
    assert table is not None
    place = [column.name for column in table.columns].index(f"USD per {result.unit}")
    assert {row[0]: row[place] for row in table.rows}[first.name] == "0.0000614"
    assert comparable_entries(result) == comparable_entries(sample.result(variants=(costly, *others)))
    [header, row, *_] = csv.reader(tidy.report([result]).splitlines())
    assert dict(zip(header, row, strict=True))["currency"] == "USD"


def test_quantities_that_were_not_measured_have_no_column_and_no_table() -> None:
    bare = tuple(
        variant.model_copy(
            update={
                "numbers": Numbers(),
                "spread": None,
            }
        )
        for variant in sample.result().variants
    )
    comparisons = tuple(each.model_copy(update={"pays_back": None}) for each in sample.result().comparisons)
    assert details.tables(sample.result(variants=bare, comparisons=comparisons)) == ()
    columns = (TableColumn("variant"), TableColumn("a"), TableColumn("b"))
    assert make_table("t", columns, [("x", "", "1")]) == Table("t", (columns[0], columns[2]), (("x", "1"),))
