"""Writes `workloads.md` beside this file from the workloads' own code, and from the claims that ask them.

python docs/reference/build.py            writes it
python docs/reference/build.py --check    fails where the file is not what the code says
"""

import argparse
import inspect
import sys
from collections import defaultdict
from pathlib import Path

import yaml

from accelbench import catalogue
from accelbench.claims import ledger
from accelbench.cli.workloads import allowed, describe
from accelbench.report.markdown import markdown_table
from accelbench.workload import Workload

HERE = Path(__file__).resolve().parent
PAGE = HERE / "workloads.md"
CLAIMS = HERE.parents[1] / "examples" / "claims"
HEAD = """# Workloads

Generated from the code by `python docs/reference/build.py`; the same in the terminal: `accelbench workloads NAME`.
"""


def claims() -> dict[str, list[str]]:
    """The rows that ask each workload, as links to their manifests."""
    found = defaultdict(list)
    for claim in ledger.load(CLAIMS):
        for manifest in claim.manifests:
            asked = yaml.safe_load((CLAIMS / manifest).read_text())["spec"]["workload"]["name"]
            found[asked].append(f"[{claim.row}](../../examples/claims/{manifest})")
    return found


def section(workload: Workload, rows: list[str]) -> str:
    """Purpose, parameters, variants, what is observed, cost, claims."""
    described = describe(workload)
    parts = [f"## {workload.name}", _paragraphs(type(workload))]
    if described["parameters"]:
        parameters = [
            (name, str(schema.get("default", "")), allowed(schema), schema.get("description", ""))
            for name, schema in described["parameters"].items()
        ]
        parts.append(markdown_table(("parameter", "default", "allowed", "what it is"), parameters, right=set()))
    variants = [
        (use, ", ".join(variant["options"]), variant["summary"]) for use, variant in described["variants"].items()
    ]
    parts.append(markdown_table(("variant", "options", "what it is"), variants, right=set()))
    if described["observes"]:
        parts.append(markdown_table(("observed", "what it is"), described["observes"].items(), right=set()))
    else:
        protocol = workload.measure(workload.Parameters()).protocol
        measured = f"Measured by protocol `{protocol}`, a {described['unit']} at a time."
        own = type(workload).measure is not Workload.measure
        parts.append(f"{measured} {_paragraphs(type(workload).measure)}" if own else measured)
        if type(workload).cost is not Workload.cost:
            parts.append(f"Cost: {_paragraphs(type(workload).cost)}")
    if rows:
        parts.append(f"Claims: {', '.join(rows)}.")
    return "\n\n".join(parts)


def _paragraphs(documented: object) -> str:
    text = (inspect.getdoc(documented) or "").replace("<", "\\<").replace("*", "\\*")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def render() -> str:
    """The whole page."""
    rows = claims()
    sections = [section(catalogue.find(name), rows[name]) for name in catalogue.names()]
    return "\n\n".join([HEAD.rstrip(), *sections]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write or check; returns the exit status."""
    parser = argparse.ArgumentParser(description="Generate the reference of the workloads.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where the file is out of date")
    text = render()
    if not parser.parse_args(arguments).check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.stderr.write("docs/reference/workloads.md is out of date: python docs/reference/build.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
