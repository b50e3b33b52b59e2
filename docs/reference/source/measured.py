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
    """Return the page of workloads: a section for each, with links to the claims that use it."""
    links = claim_links()
    sections = [section(catalogue.find(name), links[name]) for name in catalogue.names()]
    return "\n\n".join([WORKLOADS.rstrip(), *sections]) + "\n"


def section(workload: Workload, claims: list[str]) -> str:
    """Return a workload's purpose, parameters, variants, observations, cost and claims; `claims` are links."""
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
        if type(workload).measure is not Workload.measure:  # its own docstring describes it
            measured += f" {_paragraphs(type(workload).measure)}"
        parts.append(measured)
        if type(workload).cost is not Workload.cost:
            parts.append(f"Cost: {_paragraphs(type(workload).cost)}")
    if workload.extra:
        modules = sorted({library for libraries in workload.libraries.values() for library in libraries})
        parts.append(f"{figures.join_names(modules)} come with accelbench's extra `{workload.extra}`.")
    if claims:
        parts.append(f"Claims: {', '.join(claims)}.")
    return "\n\n".join(parts)


def _paragraphs(documented: object) -> str:
    """Return the docstring of a class or function as Markdown, each paragraph on one line."""
    text = (inspect.getdoc(documented) or "").replace("<", "\\<").replace("*", "\\*")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def claim_links() -> dict[str, list[str]]:
    """Return links to the claims' manifests that use each workload, by the workload's name."""
    links = defaultdict(list)
    for claim in ledger.load(CLAIMS):
        for manifest in (*claim.manifests, *claim.beside):
            workload_name = yaml.safe_load((CLAIMS / manifest).read_text())["spec"]["workload"]["name"]
            links[workload_name].append(f"[{claim.row}](../../examples/claims/{manifest})")
    return links


def numbers() -> str:
    """Return the page of numbers, with one table."""
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
    """Return the page of checks, with one table; a column marks the checks that detect disturbances."""
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
