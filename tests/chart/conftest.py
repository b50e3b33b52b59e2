"""Where helm cannot be built, the chart's tests are skipped, and say why; with CI set they fail."""

from __future__ import annotations

import os

import pytest

from cluster.build import go_tool
from cluster.errors import ToolMissingError


@pytest.fixture(scope="session", autouse=True)
def _helm() -> None:
    try:
        go_tool("helm.sh/helm/v3/cmd/helm", "v3.22.0")
    except ToolMissingError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
