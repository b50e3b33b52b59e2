"""Lives of runs, each with requests of its own: measured, lost, cancelled, ..."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from operator_world.builders import run_manifest

Ending = Literal["whole", "lost", "never-starts", "stays"]
"""Ends of a pod: it measures, ends without a result, fits no node, or runs until it is deleted."""


@dataclass(frozen=True)
class Life:
    """Define a run, the events during it, and its end."""

    name: str
    phase: str
    """Of the run at its end; empty where it is deleted."""
    sizes: tuple[int, ...] = (64,)
    policy: Mapping[str, Any] = field(default_factory=dict)
    """Its runPolicy."""
    profile: str = "cpu"
    endings: tuple[Ending, ...] = ("whole",)
    """Of its pods, by attempt; the last one is that of all further attempts."""
    meddling: Literal["", "cancel", "delete-job"] = ""
    """What a user does while its first pod runs."""
    attempts: int = 1
    """The number of the last attempt at each case."""
    measured: bool = True
    """Whether every case has a result at the end."""
    leased: bool = False
    """Whether its operator takes part in an election; then only what that asks for is tried."""

    def manifest(self, name: str) -> dict[str, Any]:
        """The run, as a user applies it."""
        run = run_manifest(sizes=self.sizes, runPolicy=dict(self.policy), accelerator={"profile": self.profile})
        return {**run, "metadata": {"name": name}}

    def ending(self, attempt: int) -> Ending:
        """Of the pod of that attempt."""
        return self.endings[min(attempt, len(self.endings)) - 1]


PROFILES = "claimed: {platform: cuda, deviceClass: gpu.example.com, cpu: 1, memory: 4Gi}\n"

LIVES: Mapping[str, Life] = MappingProxyType(
    {
        life.name: life
        for life in (
            Life("measured", phase="", sizes=(64, 128), policy={"ttlSecondsAfterFinished": 1}),
            Life("claimed", phase="Succeeded", profile="claimed"),
            Life("lost", phase="Succeeded", endings=("lost", "whole"), attempts=2),
            Life("job-deleted", phase="Succeeded", endings=("stays", "whole"), meddling="delete-job", attempts=2),
            Life("cancelled", phase="Cancelled", endings=("stays",), meddling="cancel", measured=False),
            Life(
                "late",
                phase="StartDeadlineExceeded",
                policy={"startDeadlineSeconds": 3},
                endings=("never-starts",),
                measured=False,
            ),
            Life("leased", phase="Succeeded", leased=True),
        )
    }
)
