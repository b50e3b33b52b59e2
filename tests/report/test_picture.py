"""A report shows what a case computes, if its workload offers a picture."""

import re
from typing import Any

import pytest

from accelbench import catalogue
from accelbench.api.case import Case
from accelbench.report import html
from accelbench.report.plots import picture
from report import sample
from tiers import on_a_push

SMALL: dict[str, dict[str, Any]] = {
    "heat-equation": {"size": 16, "steps": 10},
    "lennard-jones": {"cells": 3},
    "cartpole-rollout": {"environments": 8, "steps": 5},
    "neural-ode": {"batch": 2, "steps": 16},
    "photometric-stereo": {"size": 16},
}
TOO_LARGE: dict[str, dict[str, Any]] = {
    "heat-equation": {"size": 16_384, "steps": 10_000},
    "lennard-jones": {"cells": 16},
    "cartpole-rollout": {"environments": 2**22, "steps": 1000},
    "neural-ode": {"batch": 2**20},
    "photometric-stereo": {"size": 4096},
}


def case(workload: str, parameters: dict[str, Any]) -> Case:
    return sample.case(workload=workload, parameters=parameters)


def page(*cases: Case) -> str:
    return html.report("run", [html.MeasuredCase(sample.result(case=each)) for each in cases])


def test_every_workload_with_a_picture_is_in_this_test() -> None:
    base = catalogue.find("matmul-chain").picture.__func__
    assert {name for name in catalogue.names() if type(catalogue.find(name)).picture is not base} == SMALL.keys()


@pytest.mark.parametrize("workload", on_a_push(SMALL, {"heat-equation", "neural-ode"}.__contains__))
def test_a_picture_is_in_the_report_with_its_panels_and_caption(workload: str) -> None:
    drawn = picture.picture_of(case(workload, SMALL[workload]))
    assert drawn is not None
    assert drawn.panels, drawn.caption
    text = page(case(workload, SMALL[workload]))
    assert "What it computes" in text
    assert all(text.count(f">{panel.title}<") == 2 for panel in drawn.panels)  # for a desktop and for a phone
    images = sum(panel.image is not None for panel in drawn.panels)
    assert len(re.findall(r'<image [^>]*href="data:image/png;base64,', text)) >= 2 * images
    assert "#case-1-picture-760-data" not in text


@pytest.mark.parametrize("workload", TOO_LARGE)
def test_a_picture_that_takes_long_to_compute_is_not_drawn(workload: str) -> None:
    assert picture.picture_of(case(workload, TOO_LARGE[workload])) is None


def test_a_workload_without_a_picture_has_no_heading_for_it() -> None:
    assert "What it computes" not in page(sample.case())


def test_a_workload_that_is_not_installed_does_not_prevent_the_report() -> None:
    assert "What it computes" not in page(case("somebody-elses", {}))


def test_a_picture_that_fails_is_named_and_does_not_prevent_the_report() -> None:
    text = page(case("heat-equation", {"size": 1}))
    assert "picture could not be computed: ValidationError" in text
    assert "Certificate" in text


@pytest.mark.nightly
def test_only_the_first_case_of_a_sweep_is_drawn() -> None:
    cases = [case("heat-equation", {"size": size, "steps": 2}) for size in (16, 20)]
    assert page(*cases).count("What it computes") == 1
