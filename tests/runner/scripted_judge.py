"""Play a judge whose behaviour is its first argument, with the standard library only."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def misbehave(behaviour: str, request: dict[str, Any], latest: int) -> None:
    if behaviour == "raises" or (behaviour == "raises-in-round-2" and latest == 2):
        raise ZeroDivisionError("the judge cannot divide")
    if behaviour == "garbage":
        Path(request["answer"]).write_text("not json")
        sys.exit(0)
    if behaviour == "is-killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == "waits-in-round-2" and latest == 2:
        time.sleep(1000)
    if behaviour == "waits-once-in-round-2" and latest == 2:
        marker = Path(request["directory"], "asked")
        if not marker.exists():
            marker.touch()
            time.sleep(1000)


def assess(request: dict[str, Any], behaviour: str = "agrees") -> dict[str, Any]:
    """Return the assessment of a request, both as JSON."""
    case, launches = request["case"], request["launches"]
    missing = [key for key, directory in request.get("outputs", {}).items() if not Path(directory).is_dir()]
    assert not missing, missing
    failed = {launch["variant"] for launch in launches if launch.get("failure")}
    measured = {(launch["round"], launch["variant"]) for launch in launches if not launch.get("failure")}
    left = {variant["name"] for variant in case["variants"]} - failed
    numbers = {number for number, _ in measured}
    disturbed = {2} & numbers if behaviour == "disturbed-in-round-2" else set()
    rounds = sum(all((number, variant) in measured for variant in left) for number in numbers - disturbed)
    comparisons = [
        {
            "variant": variant["name"],
            "baseline": case["baseline"],
            "rounds": sum({(number, variant["name"]), (number, case["baseline"])} <= measured for number in numbers),
            "confidence": "0.95",
            "sentence": f"scripted, after {rounds} rounds",
            **(
                {}
                if {variant["name"], case["baseline"]} & failed
                else {"verdict": "equivalent", "speedup": "1", "lower": "0.99", "upper": "1.01"}
            ),
        }
        for variant in case["variants"]
        if variant["name"] != case["baseline"]
    ]
    return {
        "parity": {
            key: {"units": 1, "finite": True, "worstRatio": 0.1, "worstArray": "x", "detail": "scripted"}
            for key in request.get("outputs", {})
        },
        "certificate": {
            "checks": [{"name": name, "outcome": "passed", "reading": "0.1"} for name in ("parity", "non-finite")]
        },
        "comparisons": comparisons,
        "rounds": rounds,
        "quarantined": [{"round": number, "reasons": ["shared-device of fine: 40 %"]} for number in disturbed],
        **({"stop": "TargetMet"} if behaviour == "stops" else {}),
    }


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    misbehave(sys.argv[1], asked, max(launch["round"] for launch in asked["launches"]))
    Path(asked["answer"]).write_text(json.dumps(assess(asked, sys.argv[1])))
