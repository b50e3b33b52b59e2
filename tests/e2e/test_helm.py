"""Commands of helm after the installation of the chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chart.helm import helm
from e2e.installation import RELEASE

if TYPE_CHECKING:
    from e2e.installation import Installed


def test_helm_test_succeeds_if_the_operator_works(installed: Installed) -> None:
    place = (f"--kubeconfig={installed.system.kubeconfig}", f"--namespace={installed.system.namespace}")
    done = helm("test", RELEASE, *place, "--logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Phase:          Succeeded" in done.stdout
    assert "leads, and renews the Lease" in done.stdout
