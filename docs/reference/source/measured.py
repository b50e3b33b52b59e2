"""Write the pages of workloads, numbers and checks."""

import inspect
from collections import defaultdict
from pathlib import Path

import yaml

from accelbench import catalogue, figures
from accelbench.api.number_registry import NUMBERS as REGISTERED
from accelbench.api.numbers import MEASURED
from accelbench.claims import ledger
from accelbench.cli.workloads import describe, describe_allowed_values
from accelbench.report.markdown import markdown_table
from accelbench.validity.certificate import validity_checks
from accelbench.validity.check import remedy_for
from accelbench.workload import Workload

DOCS = Path(__file__).resolve().parents[2]
CLAIMS = DOCS.parent / "examples" / "claims"
WORKLOADS = """# Workloads

Generated from the code by `python docs/reference/build.py`. In a terminal: `accelbench workloads NAME`.
"""
NUMBERS = """# Numbers

Every number that is measured for a variant. Generated from the code by `python docs/reference/build.py`.
A manifest asks for a number by its name: `metric: speedup`. A result holds the stored ones in `variants[].numbers`.
A number without a unit is a count.
"""
CHECKS = """# Checks

Every validity check. Generated from the code by `python docs/reference/build.py`. [Validity](../concepts/validity.md)
explains what happens when one fails.
"""


def workloads() -> str:
    """Write a section for each workload, with the claims that use it."""
    rows = claims()
    sections = [section(catalogue.find(name), rows[name]) for name in catalogue.names()]
    return "\n\n".join([WORKLOADS.rstrip(), *sections]) + "\n"


def section(workload: Workload, rows: list[str]) -> str:
    """Write a workload's purpose, parameters, variants, observations, cost and claims."""
    described = describe(workload)
    parts = [f"## {workload.name}", _paragraphs(type(workload))]
    if described["parameters"]:
        parameters = [
            (name, str(schema.get("default", "")), describe_allowed_values(schema), schema.get("description", ""))
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
        measured = f"Measured by protocol `{protocol}`, one {described['unit']} at a time."
        own = type(workload).measure is not Workload.measure
        parts.append(f"{measured} {_paragraphs(type(workload).measure)}" if own else measured)
        if type(workload).cost is not Workload.cost:
            parts.append(f"Cost: {_paragraphs(type(workload).cost)}")
    if workload.extra:
        modules = sorted({library for libraries in workload.libraries.values() for library in libraries})
        parts.append(f"{figures.join_names(modules)} come with accelbench's extra `{workload.extra}`.")
    if rows:
        parts.append(f"Claims: {', '.join(rows)}.")
    return "\n\n".join(parts)


def _paragraphs(documented: object) -> str:
    text = (inspect.getdoc(documented) or "").replace("<", "\\<").replace("*", "\\*")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def claims() -> dict[str, list[str]]:
    """Link the manifests of the rows that use each workload."""
    found = defaultdict(list)
    for claim in ledger.load(CLAIMS):
        for manifest in (*claim.manifests, *claim.beside):
            asked = yaml.safe_load((CLAIMS / manifest).read_text())["spec"]["workload"]["name"]
            found[asked].append(f"[{claim.row}](../../examples/claims/{manifest})")
    return found


def numbers() -> str:
    """Write the table of numbers."""
    stored = {number.name for number in MEASURED.values()}
    rows = [
        (
            number.name,
            number.meaning,
            number.unit,
            "yes" if number.expected else "",
            "yes" if number.name in stored else "",
            number.metric,
        )
        for number in REGISTERED.values()
    ]
    columns = ("number", "what it is", "unit", "expectation", "stored", "Prometheus")
    return f"{NUMBERS}\n{markdown_table(columns, rows, right=set())}\n"


def checks() -> str:
    """Write the table of checks; disturbances are marked as not the variant's fault."""
    rows = [
        (
            check.name,
            check.threshold,
            check.reason,
            remedy_for(check, {}),
            "yes" if getattr(check, "disturbance", False) else "",
        )
        for check in validity_checks()
    ]
    columns = ("check", "threshold", "why", "what to do where it fails", "a round that fails it is measured again")
    return f"{CHECKS}\n{markdown_table(columns, rows, right=set())}\n"
