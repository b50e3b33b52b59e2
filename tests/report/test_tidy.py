"""CSV for spreadsheets: every case and variant is a row with the numbers of the other reports."""

import csv
import io

from accelbench.api.result import Result
from accelbench.report import tidy
from report import sample


def rows(*results: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tidy.report(results))))


def test_parameters_of_several_workloads_are_side_by_side() -> None:
    first = sample.result()
    case = first.case.model_copy(update={"parameters": {"rows": 7}, "name": "other"})
    second = first.model_copy(update={"case": case})
    found = rows(first, second)
    assert found[-1]["parameter.rows"] == "7"
    assert found[0]["parameter.rows"] == ""
    assert set(found[0]) == set(found[-1])
