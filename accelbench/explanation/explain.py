"""Collect the sentences that explain the verdicts of a result."""

from accelbench.api.operation_times import TIMED_CALLS
from accelbench.api.result import Result
from accelbench.explanation.rules import RULES
from accelbench.explanation.side import Side, faster_and_slower

MAXIMUM_SENTENCES = 6
"""Maximum number of sentences about a result."""


def explain(result: Result) -> tuple[str, ...]:
    """Return sentences on why variants are faster or slower than the baseline, the fastest variant first.

    Only a verdict of `faster` or `slower` is explained, and only by a rule whose conditions hold. Without times of
    calls, as under the protocols `episode` and `arrivals`, nothing is explained. There are at most
    `MAXIMUM_SENTENCES`.
    """
    protocol = result.protocol or "steady"  # `LaunchRecord.protocol` has the same default
    if protocol not in TIMED_CALLS:
        return ()
    sentences: dict[str, None] = {}  # each sentence once, in order
    for comparison in result.ranked_comparisons:
        sides = faster_and_slower(result, comparison)
        if sides is not None:
            sentences |= dict.fromkeys(explain_sides(*sides))
    return tuple(sentences)[:MAXIMUM_SENTENCES]


def explain_sides(faster: Side, slower: Side) -> tuple[str, ...]:
    """Return for each group of rules the sentence of its first rule that applies; none for a group without one."""
    sentences = []
    for group in RULES:
        sentence = next(filter(None, (rule(faster, slower) for rule in group)), None)
        if sentence:
            sentences.append(sentence)
    return tuple(sentences)
