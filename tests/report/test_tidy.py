"""CSV for spreadsheets: every case and variant is a row, and says what every other report says."""

import csv
import io

from accelbench.api.result import Result
from accelbench.report import tidy
from report import sample


def rows(*results: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tidy.report(results))))


def test_each_variant_of_each_case_is_a_row_with_its_numbers() -> None:
    result = sample.result()
    found = rows(result, result)
    assert len(found) == 2 * len(result.variants)
    for row, variant in zip(found, result.variants, strict=False):
        assert (row["variant"], row["use"], row["case"]) == (variant.name, variant.use, result.case.name)
        assert variant.seconds
        assert row["seconds"] == variant.seconds.geometric_mean_seconds
    for comparison in result.comparisons:
        (row,) = [row for row in found[: len(result.variants)] if row["variant"] == comparison.variant]
        said = (row["verdict"], row["speedup"], row["speedupLower"], row["speedupUpper"])
        assert said == (comparison.verdict, comparison.speedup, comparison.lower, comparison.upper)
    assert {name for name in found[0] if name.startswith("parameter.")} == {
        f"parameter.{name}" for name in result.case.parameters
    }


def test_parameters_of_several_workloads_stand_side_by_side() -> None:
    first = sample.result()
    case = first.case.model_copy(update={"parameters": {"rows": 7}, "name": "other"})
    second = first.model_copy(update={"case": case})
    found = rows(first, second)
    assert found[-1]["parameter.rows"] == "7"
    assert found[0]["parameter.rows"] == ""
    assert set(found[0]) == set(found[-1])
