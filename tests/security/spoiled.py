"""Documents with a stranger's text wherever they have one, alike in each place, so that names still agree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelbench.api.result import Result

__all__ = ["NASTY", "spoiled"]

NASTY = (
    "\x1b[31mred\x1b]8;;https://example.com\x07link\x1b]8;;\x07\x9b2J",
    "bell\x07 back\x08 delete\x7f null\x00",
    "two\nlines\rand\u2028more\u2029\v\f\x85",
    "\u202edesrever\u202c \u2066isolated\u2069 \u200bnothing\ufeff",
    "<script>alert(1)</script><img src=x onerror=alert(1)>&lt;b&gt; \"'",
    "</td></tr></table><a href='javascript:alert(1)'>x</a>",
    "| a | b |\n|---|---|\n| c | d |",
    "# heading\n- list\n> quote\n```\ncode\n```",
    "![x](https://example.com/x.png) [y](javascript:alert(1)) <https://example.com>",
    "[link=https://example.com]x[/link] [bold red]y[/] :smile:",
    'a"} 1\nother{b="c',
    "$\\frac{1}{0}$ %s {0} {{ 7 * 7 }} {% raw %}",
    "x" * 5000,
)
TEXTS = {
    *("name", "use", "variant", "baseline", "unit", "workload", "run", "series", "profile", "platform"),
    *("interpreter", "requirements", "python", "packages", "pythonVersion", "directories", "lockDigest", "environment"),
    *("message", "sentence", "reading", "threshold", "notes", "reasons", "value", "invalid", "fingerprint", "source"),
}
"""Fields of a result whose text nobody bounds."""


def spoiled(result: Result, text: str, *, whole: bool = False) -> str:
    """The result as JSON, with `text` before each of its texts; with `whole`, also what its keys are called."""
    return json.dumps(_spoiled(json.loads(result.to_json()), text, inside=False, whole=whole))


def _spoiled(value: Any, text: str, *, inside: bool, whole: bool) -> Any:
    if isinstance(value, dict):
        return {
            (text + key if inside and whole else key): _spoiled(each, text, inside=inside or key in TEXTS, whole=whole)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_spoiled(each, text, inside=inside, whole=whole) for each in value]
    return text + value if inside and isinstance(value, str) else value
