"""A tenant who tries everything against another's runs that Kubernetes' `edit` allows, short of entering their pods.

It applies runs, creates pods, Jobs, claim templates and Events with copied names, labels, annotations and owners, adds
labels to its objects later, and prints what it likes. Nodes and one API server in three show wrong times meanwhile.
"""

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import cycle
from random import Random

from accelbench.api import labels
from accelbench.api.case import Case
from accelbench.api.profiles import Profiles
from accelbench.api.result import SpeedupEstimate
from accelbench.cluster_api.kinds import CLAIM_TEMPLATE
from accelbench.delivery.log import MARK, RoundFinished, digest_of, encode_document, encode_event
from accelbench.plan.names import attempt_name, claim_template_name
from accelbench_operator.runs.accept import Plan, accept
from accelbench_operator.runs.job import build_job
from operator_world.api_server import Id, Manifest, RefusedError, Version
from operator_world.builders import IMAGE, make_headline, make_log, make_result, run_manifest
from operator_world.nodes import FORGED
from operator_world.played import ending
from operator_world.world import World

HONEST = "team-0"
"""Namespace of the honest tenant, where the hostile one may create objects too."""
SPEEDUP = "999"
OWNERS = ("none", "config-map", "another-job", "the-run", "a-job-of-another-group")
AMBUSHED = 0.4
"""Share of the honest runs."""
HOURS = (-30.0, -2.0, 2.0, 30.0)
CREATIONS = (
    *("apply_run", "create_pod", "create_job", "label_job", "create_claim_template", "post_event"),
    *("set_nodes_clocks", "set_servers_clock"),
)
PATCHES = ("change_case", "suspend_job", "take_labels_off", "relabel_pod", "post_event", "create_pod")
"""Attacks that only a user who may patch Jobs and pods can make."""
SEED = 77
"""The seed of a changed case, whose pod prints a forged result of the honest case."""


class Hostile:
    """Try something at each call of `attack`."""

    def __init__(self, world: World, seed: int, repertoire: Sequence[str] = CREATIONS) -> None:
        self._world = world
        self._repertoire = repertoire
        self._server = world.server
        self._random = Random(seed)  # noqa: S311 - a day that can be had again
        self._made = 0
        self.tries: Counter[str] = Counter()
        """By name, how often each was tried with something to try it on."""
        world.nodes.ending = self._end
        world.server.changed.append(self._ambush)

    def attack(self) -> None:
        """Try one thing."""
        name = self._random.choice(self._repertoire)
        try:
            if getattr(self, f"_{name}")():
                self.tries[name] += 1
        except RefusedError:
            self.tries[f"{name}, refused"] += 1

    def _apply_run(self) -> bool:
        run = run_manifest(sizes=self._random.choice([(64,), (1, 2, 3), range(300)]))
        run["metadata"] |= {"name": self._new_name(), "namespace": self._random.choice([HONEST, "team-1"])}
        run["spec"] |= self._random.choice(
            [
                {},
                {"series": "honest"},
                {"runPolicy": {"parallelism": 3, "ttlSecondsAfterFinished": 0}},
                {"runPolicy": {"suspend": True}},
                {"variants": [{"use": "jax/jitt"}]},
                {"variants": [{"use": "pytorch/eager"}] * 40},
                {"workload": {"name": "x" * 10_000}},
                {"className": "another"},
                {"podTemplate": {"spec": {"hostNetwork": True}}},
            ]
        )
        self._server.create("benchmarkruns", run)
        return True

    def _create_pod(self) -> bool:
        victim = self._victim("pods")
        if victim is None:
            return False
        pod = copy.deepcopy(victim)
        (owner,) = pod["metadata"]["ownerReferences"]
        owners = self._owners(owner, pod["metadata"]["labels"][labels.RUN_UID])
        pod["metadata"] = {key: pod["metadata"][key] for key in ("namespace", "labels", "annotations")}
        pod["metadata"] |= {"name": self._new_name(), "ownerReferences": owners}
        pod["metadata"]["labels"][FORGED] = "true"
        state = {"exitCode": 0, "reason": "Completed", "startedAt": _epoch(), "finishedAt": _epoch()}
        _, _, state["message"], log = _forged(_case_of(pod))
        pod["status"] = {
            "phase": "Succeeded",
            "containerStatuses": [{"name": "runner", "state": {"terminated": state}}],
        }
        version = self._server.create("pods", pod)
        self._server.logs[version.uid] = log
        return True

    def _create_job(self) -> bool:
        """Create a Job under the name of one of the next attempts."""
        victim = self._victim("jobs")
        if victim is None:
            return False
        job = copy.deepcopy(victim)
        marks = job["metadata"]["labels"]
        case = _case_of(job["spec"]["template"])
        number = case.origin.attempt + self._random.randint(1, 2)
        job["metadata"] = {key: job["metadata"][key] for key in ("namespace", "labels", "ownerReferences")}
        job["metadata"]["name"] = attempt_name(case.origin.run, marks[labels.RUN_UID], case.name, number)
        job["metadata"]["labels"] = self._random.choice([{}, marks, {**marks, labels.ATTEMPT: str(number)}])
        origin = case.origin.model_copy(update={"attempt": number})
        template = job["spec"]["template"]
        template["metadata"]["annotations"][labels.CASE_ANNOTATION] = case.model_copy(
            update={"origin": origin}
        ).to_json()
        template["metadata"]["labels"][FORGED] = "true"
        template["spec"]["containers"][0]["image"] = "attacker"
        job.pop("status", None)
        self._server.create("jobs", job)
        return True

    def _ambush(self, kind: str, version: Version, _: Version | None) -> None:
        """Create the Job of the first attempt at a new run before the operator does."""
        is_new_run = version.id.plural == "benchmarkruns" and kind == "ADDED" and version.id.name.startswith("honest")
        if not is_new_run or self._random.random() > AMBUSHED:
            return
        plan = accept(version.manifest, Profiles(), IMAGE)
        assert isinstance(plan, Plan)
        job = build_job(plan.run, plan.case(plan.cases[0].name), 1, plan.runner)
        job["spec"]["template"]["metadata"]["labels"][FORGED] = "true"
        job["spec"]["template"]["spec"]["containers"][0]["image"] = "attacker"
        self._world.time.later(0.0, lambda: self._server.create("jobs", job))
        self.tries["ambush"] += 1

    def _label_job(self) -> bool:
        """Give a forged Job the labels that the operator selects."""
        forged = [job for job in self._server.all("jobs") if _is_forged(job["spec"]["template"])]
        if not forged:
            return False
        job = self._random.choice(forged)
        marks = {key: value for key, value in job["spec"]["template"]["metadata"]["labels"].items() if key != FORGED}
        id_ = Id("jobs", job["metadata"]["namespace"], job["metadata"]["name"])
        self._server.change(id_, job["metadata"]["uid"], lambda body: body["metadata"].update(labels=marks))
        return True

    def _create_claim_template(self) -> bool:
        victim = self._victim("benchmarkruns")
        if victim is None:
            return False
        name, uid = victim["metadata"]["name"], victim["metadata"]["uid"]
        metadata = {"name": claim_template_name(name, uid), "namespace": HONEST}
        self._server.create("resourceclaimtemplates", {"kind": CLAIM_TEMPLATE.name, "metadata": metadata, "spec": {}})
        return True

    def _post_event(self) -> bool:
        victim = self._victim(self._random.choice(["pods", "jobs", "benchmarkruns"]))
        if victim is None:
            return False
        about = {"uid": victim["metadata"]["uid"], "namespace": HONEST, "name": victim["metadata"]["name"]}
        event = {"metadata": {"name": self._new_name(), "namespace": HONEST}, "involvedObject": about}
        self._server.create("events", event | {"type": "Warning", "reason": "Failed", "message": "\x1b[31m" * 5000})
        return True

    def _change_case(self) -> bool:
        """Change the question of a Job that is suspended."""
        victim = self._victim("jobs")
        if victim is None or not victim["spec"].get("suspend"):
            return False

        def change(job: Manifest) -> None:
            metadata = job["spec"]["template"]["metadata"]
            case = _case_of(job["spec"]["template"])
            measurement = case.measurement.model_copy(update={"seed": SEED})
            metadata["annotations"][labels.CASE_ANNOTATION] = case.model_copy(
                update={"measurement": measurement}
            ).to_json()

        self._change("jobs", victim, change)
        return True

    def _suspend_job(self) -> bool:
        victim = self._victim("jobs")
        if victim is None:
            return False
        is_suspended = self._random.random() < 0.5
        self._change("jobs", victim, lambda job: job["spec"].update(suspend=is_suspended))
        return True

    def _take_labels_off(self) -> bool:
        victim = self._victim("pods")
        if victim is None:
            return False
        self._change("pods", victim, lambda pod: pod["metadata"]["labels"].pop(labels.MANAGED_BY, None))
        return True

    def _relabel_pod(self) -> bool:
        victim = self._victim("pods")
        if victim is None or victim["status"]["phase"] != "Running":
            return False
        self._change("pods", victim, lambda pod: pod["metadata"]["labels"].update({labels.CASE: "another"}))
        return True

    def _change(self, plural: str, victim: Manifest, change: Callable[[Manifest], object]) -> None:
        metadata = victim["metadata"]
        self._server.change(Id(plural, metadata["namespace"], metadata["name"]), metadata["uid"], change)

    def _set_nodes_clocks(self) -> bool:
        self._world.nodes.clock_error = timedelta(hours=self._random.choice(HOURS))
        return True

    def _set_servers_clock(self) -> bool:
        errors = cycle([timedelta(hours=self._random.choice(HOURS)), timedelta(), timedelta()])
        self._world.network.date_error = lambda: next(errors)
        return True

    def _end(self, pod: Version, case: Case, how: str) -> tuple[int, str, str, str]:
        """End a pod of the hostile tenant with a forged log; others end as planned."""
        if _is_forged(pod.manifest):
            return _forged(case)
        if case.measurement.seed == SEED:
            return _forged(case.model_copy(update={"measurement": case.measurement.model_copy(update={"seed": 0})}))
        if not case.origin.run.startswith("hostile"):
            return ending(case, how)
        _, reason, message, log = _forged(self._claimed(case))
        round_ = RoundFinished(
            round=1,
            comparisons=tuple(SpeedupEstimate(variant=f"name-{number}", speedup="9") for number in range(48)),
        )
        bomb = "\n".join(encode_document("result", "2", "0" * 10_000_000))
        pieces = "\n".join(f"{MARK} result {number} 1/9 {digest_of('x')} A" for number in range(2000))
        log = self._random.choice(
            [log, bomb, pieces, f"{encode_event(round_)}\n{log}", log[: len(log) // 2], "\0" * 9999]
        )
        return self._random.choice([0, 1]), reason, self._random.choice([message, "", "{", "x" * 4096]), log

    def _claimed(self, case: Case) -> Case:
        """Return the case of the honest tenant that a pod claims to have measured."""
        victim = self._victim("jobs")
        return _case_of(victim["spec"]["template"]) if victim else case

    def _owners(self, owner: Manifest, run_uid: str) -> list[Manifest]:
        """Return one of `OWNERS` with the name of the real owner."""
        run = {"apiVersion": "accelbench.dev/v1alpha1", "kind": "BenchmarkRun", "uid": run_uid}
        found: dict[str, list[Manifest]] = {
            "none": [],
            "config-map": [owner | {"apiVersion": "v1", "kind": "ConfigMap", "uid": run_uid}],
            "another-job": [owner | {"uid": run_uid}],
            "the-run": [owner | run],
            "a-job-of-another-group": [owner | {"apiVersion": "example.com/v1"}],
        }
        return found[self._random.choice(OWNERS)]

    def _victim(self, plural: str) -> Manifest | None:
        """Return an object of the honest tenant."""
        found = [
            body
            for body in self._server.all(plural)
            if body["metadata"]["namespace"] == HONEST
            and body["metadata"]["name"].startswith("honest")
            and not _is_forged(body)
            and not _is_forged((body.get("spec") or {}).get("template") or {})
        ]
        return self._random.choice(found) if found else None

    def _new_name(self) -> str:
        self._made += 1
        return f"hostile-{self._made}"


def _is_forged(body: Manifest) -> bool:
    return FORGED in ((body.get("metadata") or {}).get("labels") or {})


def _case_of(body: Manifest) -> Case:
    return Case.model_validate_json(body["metadata"]["annotations"][labels.CASE_ANNOTATION])


def _forged(case: Case) -> tuple[int, str, str, str]:
    result = make_result(case, speedup=SPEEDUP)
    return 0, "Completed", make_headline(result), make_log(result)


def _epoch() -> str:
    return "2026-03-01T12:00:00Z"
