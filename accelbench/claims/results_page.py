"""Write the page with all tables of the claims, their bounds, warnings and reports. Pure."""

from collections.abc import Sequence

from accelbench import figures
from accelbench.api.result import Result
from accelbench.claims import machines, tables, warnings
from accelbench.claims.answers import VERDICT_NAMES
from accelbench.claims.ledger import UNNAMED
from accelbench.claims.machines import HARDWARE_NAMES
from accelbench.claims.settle import MeasuredRun, SettledClaim
from accelbench.claims.words import simplify_sentence
from accelbench.report.markdown import escape


def page(settled_claims: Sequence[SettledClaim], results_link: str) -> str:
    """Return the page as Markdown; `results_link` leads from the page to the directory of all results."""
    paragraphs = [
        "# Claims: all tables, bounds and warnings",
        "[The answers](../claims.md) are on a page of their own, and so are [the words](words.md) of these tables.",
        *machines.describe([result for each in settled_claims for run in each.runs for result in run.results]),
    ]
    for settled_claim in settled_claims:
        paragraphs += _section(settled_claim, results_link)
    return "\n\n".join(paragraphs) + "\n"


def _section(settled_claim: SettledClaim, results_link: str) -> list[str]:
    """Return the paragraphs of one claim: its findings, what can settle it, tables of its runs, warnings and links.

    A claim without findings has its conditions in their place.
    """
    claim = settled_claim.claim
    paragraphs = [f"## Row {claim.row}", f"**{escape(claim.asks)}** {VERDICT_NAMES[settled_claim.verdict]}."]
    lines = settled_claim.sentences or tuple(f"{condition}: not measured." for condition in settled_claim.conditions)
    if lines:
        paragraphs.append("\n".join(f"- {escape(simplify_sentence(line))}" for line in lines))
    paragraphs.append(_deciding_hardware(settled_claim))
    paragraphs += tables.run_tables(settled_claim.deciding_runs, claim)
    if settled_claim.other_runs:
        paragraphs += ["Also measured, deciding nothing:", *tables.run_tables(settled_claim.other_runs, claim)]
    paragraphs += _caveats(settled_claim)
    results = [result for run in settled_claim.runs for result in run.results]
    devices = machines.devices(results)
    if devices:
        paragraphs.append(escape(f"Measured on: {figures.join_names(devices)}."))
    return [*paragraphs, _links(settled_claim, results_link)]


def _deciding_hardware(settled_claim: SettledClaim) -> str:
    """Return a sentence on the hardware or the machine that can settle the claim, or why nothing can."""
    claim = settled_claim.claim
    if claim.machine == UNNAMED:
        return "The article does not name what it measured, or not the machine, so nothing can settle it."
    if claim.machine:
        return f"The article gives a time on one machine ({escape(claim.machine)}), and no other can settle it."
    return f"Asked of: {figures.join_names([HARDWARE_NAMES[hardware] for hardware in claim.hardware])}."


def _caveats(settled_claim: SettledClaim) -> list[str]:
    """Return a Markdown list of what limits the claim's verdict: outdated runs, warnings, missing runs."""
    runs = settled_claim.runs
    caveats = [
        f"Measured {_last_day(run)} with an older source of its workload ({run.name}): to be measured again."
        for run in runs
        if run.has_older_source
    ]
    caveats += [
        f"The conditions changed after the result of {_last_day(run)} ({run.name}) was measured; earlier conditions "
        "are on the page of the history."
        for run in settled_claim.deciding_runs
        if run.has_other_bounds
    ]
    caveats += [f"Warning: {warning}" for warning in warnings.collect(runs, settled_claim.claim.compared_variants)]
    caveats += [f"Still to be measured: {name}." for name in settled_claim.manifests_to_run]
    return ["\n".join(f"- {escape(caveat)}" for caveat in caveats)] if caveats else []


def _last_day(run: MeasuredRun) -> str:
    """Return the day on which the run's last launch ended; empty without results."""
    return max((_day(result) for result in run.results), default="")


def _day(result: Result) -> str:
    return result.finished[:10]


def _links(settled_claim: SettledClaim, results_link: str) -> str:
    """Return links to the reports of all runs, if there are any, and to the manifests."""
    reports = [
        f"[{run.name}]({results_link}/{run.parent_directory}/{run.name}/report.md)" for run in settled_claim.runs
    ]
    names = [file.removesuffix(".yaml") for file in (*settled_claim.claim.manifests, *settled_claim.claim.beside)]
    manifests = [f"[{name}](../../examples/claims/{name}.yaml)" for name in names]
    reports_text = f"Results with their certificates: {', '.join(reports)}. " if reports else ""
    return f"{reports_text}To run: {', '.join(manifests)}."
