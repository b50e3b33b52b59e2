"""A compile time is cold or warm as it is labelled."""

import pytest

from accelbench.api.result import Check
from accelbench.launch.record import WarmProbe
from accelbench.validity.certificate import certify
from accelbench.validity.evidence import Evidence
from judge.launches import a_case, a_launch

HIT, MISS = {"hits": 3, "misses": 0}, {"hits": 0, "misses": 3}


def check(cold: object, warm: WarmProbe | None = None) -> Check:
    launch = a_launch(facts={} if cold is None else {"compileCache": cold}).model_copy(update={"warm": warm})
    certificate = certify(Evidence(case=a_case(), launches=(launch,)))
    return next(each for each in certificate.checks if each.name == "compile-cache")


@pytest.mark.parametrize(
    ("cold", "warm", "outcome", "reading"),
    [
        (None, None, "passed", "nothing is compiled"),
        (MISS, None, "passed", "cold: 0 hits, 3 misses"),
        (MISS, WarmProbe(cache=HIT), "passed", "cold: 0 hits, 3 misses; warm: 3 hits, 0 misses"),
        ({"hits": 1, "misses": 2}, None, "passed", "cold: 1 hits, 2 misses"),
        (HIT, None, "failed", "cold: 3 hits, 0 misses"),
        (MISS | {"before": 7}, None, "failed", "7 files in its cache beforehand"),
        (MISS, WarmProbe(cache={"hits": 2, "misses": 1}), "untested", "its times are not those of a hit"),
        (MISS, WarmProbe(cache=MISS), "untested", "its times are not those of a hit"),
        (MISS, WarmProbe(failure="Killed: SIGSEGV ended it"), "untested", "own warm probe failed: Killed: SIGSEGV"),
        (MISS, WarmProbe(cache="garbage"), "untested", "it reported no counts"),
        ("garbage", None, "untested", "compileCache"),
    ],
)
def test_hits_and_misses_decide(cold: object, warm: WarmProbe | None, outcome: str, reading: str) -> None:
    found = check(cold, warm)
    assert (found.outcome, reading in found.reading) == (outcome, True), found.reading
