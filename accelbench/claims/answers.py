"""Describe a claim's verdict in words: its name, the results that it rests on, and an answer. Pure."""

from collections.abc import Sequence

from accelbench import figures
from accelbench.api.result import Comparison, Result
from accelbench.claims import evidence, suite, words
from accelbench.claims.bounds import VERDICTS_OF_RESULTS, Age
from accelbench.claims.ledger import ClaimVerdict
from accelbench.claims.settle import SettledClaim
from accelbench.verdict.redaction import redact_invalid

VERDICT_NAMES: dict[ClaimVerdict, str] = {
    "confirmed": "confirmed",
    "in-direction": "reproduces in direction",
    "example-exists": "an example exists",
    "refuted": "refuted",
    "inconclusive": "inconclusive",
    "measured": "measured",
    "measured-not-decided": "measured, not decided",
    "withheld": "withheld",
    "opinion": "opinion",
    "not-measured-yet": "not measured yet",
    "untestable-here": "untestable here",
    "untestable-anywhere": "untestable anywhere",
}
BEGINNINGS: dict[ClaimVerdict, str] = {
    "confirmed": "Yes.",
    "in-direction": "Yes in direction, but the interval excludes the article's figure.",
    "example-exists": "Yes, it can be so: an example exists.",
    "refuted": "No.",
    "inconclusive": "Not decided.",
    "measured": "This is a question of our own, so there is no verdict.",
    "measured-not-decided": "Not decided: the measurement is incomplete.",
    "withheld": "No verdict, as it would mislead.",
    "opinion": "The sentence claims nothing that can be measured.",
    "not-measured-yet": "Not measured yet.",
    "untestable-here": "This hardware cannot settle it.",
    "untestable-anywhere": "Nothing can settle it: the article does not name what it measured.",
}
"""How a generated answer begins."""
AGES: dict[Age, str] = {
    "before-any-result": "before any result",
    "before-this-result": "after an earlier result",
    "after-this-result": "after this result",
    "not-recorded": "not recorded",
}
FRAMEWORKS = {"jax": "JAX", "torch": "PyTorch"}


def in_words(settled_claim: SettledClaim) -> str:
    """Return the answer that the ledger has for these results or, if it has none, a generated answer."""
    return settled_claim.answer or generate(settled_claim)


def generate(settled_claim: SettledClaim) -> str:
    """Generate an answer from the findings.

    Without findings, a question of our own or an opinion is answered by the comparisons of its results.
    """
    sentences = [words.simplify_sentence(sentence) for sentence in settled_claim.sentences]
    if not sentences and settled_claim.verdict in {"measured", "opinion"}:
        baseline = settled_claim.claim.table_baseline
        results = [redact_invalid(result) for result in settled_claim.deciding_results]
        if baseline:
            results = [suite.with_baseline(result, baseline) for result in results]
        sentences = [_describe_comparisons(result) for result in results]
    return " ".join(filter(None, (BEGINNINGS[settled_claim.verdict], *sentences)))


def first_sentence(text: str) -> str:
    """Return the first sentence of a text; a period inside a number or a name does not end it."""
    sentence, period, _ = text.partition(". ")
    return f"{sentence}." if period else sentence


def describe_speedup(comparison: Comparison) -> str:
    """Describe a comparison's speedup, such as `1.9 times as fast (1.6 to 2.2)`; empty if it has none.

    The warning that the interval may be too narrow is part of the text.
    """
    if comparison.speedup is None or comparison.lower is None or comparison.upper is None:
        return ""
    text = words.times(float(comparison.speedup), float(comparison.lower), float(comparison.upper))
    if not evidence.may_be_too_narrow(comparison):
        return text
    return f"{text.removesuffix(')')}, or wider)"


def basis(settled_claim: SettledClaim) -> str:
    """Return the basis of the verdict: targets or devices, versions, days, and the age of the bounds."""
    results = settled_claim.deciding_results
    if not results:
        return ""
    texts = [_where(results), _versions(results), _days(results)]
    if settled_claim.claim.is_decidable:
        record = settled_claim.bounds
        commit = f" ({record.commit[:8]})" if record else ""
        texts.append(f"bounds written {AGES[settled_claim.bounds_age]}{commit}")
    return ", ".join(filter(None, texts))


def is_by_program(settled_claim: SettledClaim) -> bool:
    """Return True if there is a verdict that rests on compiled programs alone, so that nothing was measured."""
    results = settled_claim.deciding_results
    has_verdict = settled_claim.verdict in VERDICTS_OF_RESULTS
    return has_verdict and bool(results) and all(result.compiled for result in results)


def _where(results: Sequence[Result]) -> str:
    """Return where the results are from: `by program for h100`, `on CPU`, or both."""
    targets = sorted({str(result.case.accelerator.target) for result in results if result.compiled})
    devices = dict.fromkeys(words.device_name(result) for result in results if not result.compiled)
    texts = [f"by program for {figures.join_names(targets)}"] if targets else []
    return " and ".join([*texts, *(f"on {device}" for device in devices)])


def _versions(results: Sequence[Result]) -> str:
    """Return the versions of the frameworks, such as `JAX 0.10.2, PyTorch 2.15`; several if the results differ."""
    texts = []
    for package, title in FRAMEWORKS.items():
        full_versions = [result.fingerprint.get(f"version.{package}", "") for result in results]
        # Without the local part, such as `+cu128`; empty if a result's launches did not import the framework.
        versions = {version.partition("+")[0] for version in full_versions} - {""}
        if versions:
            texts.append(f"{title} {' and '.join(sorted(versions))}")
    return ", ".join(texts)


def _days(results: Sequence[Result]) -> str:
    """Return the first and the last day of the measurements, or the one day."""
    days = sorted({result.finished[:10] for result in results})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _describe_comparisons(result: Result) -> str:
    """Return a sentence on each variant's speedup over the baseline; empty if nothing was compared."""
    texts = []
    for comparison in result.comparisons:
        speedup_text = describe_speedup(comparison)
        if speedup_text and not comparison.invalid:
            texts.append(f"{comparison.variant} was {speedup_text}")
    return f"Against {result.case.baseline}, {figures.join_names(texts)}." if texts else ""
