"""Recording rules and alerts: what promtool says of them, and that each has its test and its page."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.build import binaries
from cluster.wait import HANG_SECONDS
from metrics.documents import faster, snapshot
from metrics.serving import text_of

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "charts" / "accelbench" / "rules"
PAGE = ROOT / "docs" / "operations" / "alerts.md"
CASES = sorted(Path(__file__).parent.glob("*_test.yaml"))
FILES = sorted(RULES.glob("*.yaml"))


def rules() -> list[dict[str, Any]]:
    groups = [group for file in FILES for group in yaml.safe_load(file.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


ALERTS = [rule for rule in rules() if "alert" in rule]


def promtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [binaries().promtool, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )


def with_rules(case: Path, directory: Path, rules: Path = RULES) -> Path:
    """The file of tests, with the place of the rules filled in."""
    written = directory / case.name
    written.write_text(case.read_text().replace("RULES", str(rules)))
    return written


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_promtool_accepts_the_rules(file: Path) -> None:
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", file)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "rule", [{"record": "a", "expr": "sum("}, {"alert": "A", "expr": "up", "labels": {"a": "{{ $label.a }}"}}]
)
def test_promtool_finds_mistakes(rule: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "broken", "rules": [rule]}]}))
    assert promtool("check", "rules", "--lint=all", "--lint-fatal", file).returncode != 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_alerts_fire_where_they_should_and_nowhere_else(case: Path, tmp_path: Path) -> None:
    done = promtool("test", "rules", with_rules(case, tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_an_alert_that_never_fires_fails_its_test(case: Path, tmp_path: Path) -> None:
    for file in FILES:
        broken = yaml.safe_load(file.read_text())
        for rule in (rule for group in broken["groups"] for rule in group["rules"] if "alert" in rule):
            rule["expr"] = "vector(0) > 1"
        (tmp_path / file.name).write_text(yaml.safe_dump(broken))
    done = promtool("test", "rules", with_rules(case, tmp_path / "..", tmp_path))
    expected = len(yaml.safe_load(case.read_text())["tests"])
    assert done.returncode != 0
    assert done.stdout.count("alertname: ") + done.stderr.count("alertname: ") >= expected


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_every_alert_has_a_test_a_severity_and_a_section_of_the_page(rule: dict[str, Any]) -> None:
    name = rule["alert"]
    tested = "\n".join(case.read_text() for case in CASES)
    assert f"alertname: {name}" in tested
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"]["runbook"] == f"docs/operations/alerts.md#{name.lower()}"
    assert f"\n## {name}\n" in PAGE.read_text()


def test_every_alert_of_the_page_exists() -> None:
    described = re.findall(r"^## (Accelbench\w+)$", PAGE.read_text(), re.MULTILINE)
    assert sorted(described) == sorted(rule["alert"] for rule in ALERTS)


def test_every_metric_of_a_rule_is_exported() -> None:
    from accelbench_operator.metrics.telemetry import Telemetry

    telemetry = [sample for metric in Telemetry().collect() for sample in [metric.name, f"{metric.name}_total"]]
    exported = {*re.findall(r"^# TYPE (\w+)", text_of(snapshot(("team", faster()))), re.MULTILINE), *telemetry}
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    asked = {name for rule in rules() for name in re.findall(r"\baccelbench[\w:]*", rule["expr"])}
    assert asked - recorded <= exported
