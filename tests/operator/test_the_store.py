"""The operator's store: a list replaces it, a watch changes it, and its own writes survive a stale list."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from accelbench.cluster_api.async_client import AsyncClient
from accelbench.cluster_api.errors import ApiError, ExpiredError
from accelbench.cluster_api.kinds import JOB
from accelbench_operator.engine.kinds import Key, Owned
from accelbench_operator.engine.reflector import FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS, WATCHES_PER_LIST, Reflector
from accelbench_operator.engine.store import Store
from accelbench_operator.runs.objects import RunObjects
from accelbench_operator.runs.observed import observe_job
from accelbench_operator.runs.summary import Summary, summarize
from operator_world.builders import (
    NAME,
    NAMESPACE,
    NOW,
    UID,
    make_attempt,
    make_job,
    make_plan,
    make_pod,
    make_result,
    make_summary,
    running,
)

KEY = Key("BenchmarkRun", NAMESPACE, NAME, UID)
PLAN = make_plan(sizes=(1, 2))
FIRST, SECOND = (make_job(PLAN, make_attempt(PLAN, index)) for index in range(2))


def new_store() -> tuple[Store, list[str]]:
    changed: list[str] = []
    store = Store()
    store.subscribe(lambda before, after: changed.append((after or before).owner))  # type: ignore[union-attr]
    return store, changed


def jobs_in(store: Store) -> set[str]:
    return {held.key.name for held in store.owned(UID) if held.key.kind == "Job"}


def test_a_list_replaces_the_store_and_reports_removed_objects() -> None:
    store, changed = new_store()
    store.replace("Job", None, [FIRST, SECOND], store.tick)
    changed.clear()
    store.replace("Job", None, [SECOND], store.tick)

    assert jobs_in(store) == {SECOND.key.name}
    assert changed == [UID]


def test_a_list_of_one_namespace_leaves_the_others_alone() -> None:
    store, _ = new_store()
    elsewhere = replace(SECOND, key=SECOND.key._replace(namespace="other"))
    store.put(FIRST)
    store.put(elsewhere)
    store.replace("Job", "other", [], store.tick)

    assert jobs_in(store) == {FIRST.key.name}


def test_what_was_written_while_a_list_was_under_way_is_kept() -> None:
    store, _ = new_store()
    since = store.tick
    store.put(FIRST, fresh=True)
    store.replace("Job", None, [], since)
    assert jobs_in(store) == {FIRST.key.name}

    store.replace("Job", None, [], store.tick)
    assert jobs_in(store) == set()


def test_what_was_written_with_another_owner_is_kept_while_a_list_was_under_way() -> None:
    store, _ = new_store()
    store.put(replace(FIRST, owner="earlier run"))
    since = store.tick
    store.put(FIRST, fresh=True)
    store.replace("Job", None, [], since)

    assert jobs_in(store) == {FIRST.key.name}


def test_a_list_of_one_namespace_does_not_make_older_lists_of_others_win_over_what_was_written() -> None:
    store, _ = new_store()
    since = store.tick
    store.put(FIRST, fresh=True)
    store.replace("Job", "other", [], store.tick)
    store.replace("Job", FIRST.key.namespace, [], since)

    assert jobs_in(store) == {FIRST.key.name}


def test_an_unchanged_object_is_not_reported_again() -> None:
    store, changed = new_store()
    store.put(FIRST)
    store.put(FIRST)

    assert changed == [UID]


def test_a_copy_of_a_result_in_another_namespace_does_not_belong_to_the_run() -> None:
    objects = RunObjects(Store())
    objects.store.put(replace(make_summary(PLAN), namespace="elsewhere"))
    assert objects.observed(KEY).results == {}
    assert len(objects.latest(9)[0]) == 1


def test_the_newest_pod_of_a_job_counts() -> None:
    store = Store()
    objects = RunObjects(store)
    attempt = make_attempt(PLAN)
    old, new = make_pod(attempt), make_pod(attempt)
    new = replace(new, key=new.key._replace(name="newer"), created_at=old.created_at.replace(hour=23))
    store.put(new)
    store.put(old)

    assert objects.observed(KEY).pod(attempt.model_copy(update={"job_uid": old.job_uid})) == new


def test_the_pod_that_succeeded_counts_if_a_job_has_two() -> None:
    """The Job controller creates a second pod if the answer about the first was lost, and then deletes one."""
    store = Store()
    objects = RunObjects(store)
    attempt = make_attempt(PLAN)
    old, new = make_pod(attempt, phase="Succeeded"), make_pod(attempt)
    new = replace(new, key=new.key._replace(name="newer"), created_at=old.created_at.replace(hour=23))
    store.put(old)
    store.put(new)

    assert objects.observed(KEY).pod(attempt.model_copy(update={"job_uid": old.job_uid})) == old


def test_only_the_latest_result_of_a_series_is_exported() -> None:
    store = Store()
    objects = RunObjects(store)
    old = make_summary(PLAN)
    new = replace(old, name="newer", run_uid="another", created_timestamp=old.created_timestamp + 60)
    store.put(new)
    store.put(old)

    assert objects.latest(9) == ((new,), 0)
    assert store.count("BenchmarkResult") == 2


def test_the_latest_result_is_the_one_stored_last_even_if_clocks_of_nodes_differ() -> None:
    store = Store()
    objects = RunObjects(store)
    case = PLAN.cases[0]

    def stored(name: str, finished: str, minute: int) -> Summary:
        result = make_result(case).model_copy(update={"finished": finished})
        return summarize(result, Key("BenchmarkResult", NAMESPACE, name, name), UID, created=NOW.replace(minute=minute))

    new = stored("new", "2026-03-01T12:01:00Z", minute=2)
    store.put(new)
    store.put(stored("of-a-node-that-is-ahead", "2027-06-01T00:00:00Z", minute=1))
    assert objects.latest(9) == ((new,), 0)


def test_a_namespace_with_many_series_takes_no_place_of_another() -> None:
    store = Store()
    objects = RunObjects(store)
    old = make_summary(PLAN)
    honest = replace(old, namespace="honest", name="honest")
    store.put(honest)
    for number in range(50):
        store.put(replace(old, name=f"r-{number}", series=f"s-{number}", created_timestamp=1e9 + number))
    shown, omitted = objects.latest(3)
    assert ({each.name for each in shown}, omitted) == ({"honest", "r-49", "r-48"}, 48)


def test_above_the_limit_the_newest_series_are_exported_and_stay_the_same_until_one_changes() -> None:
    store = Store()
    objects = RunObjects(store)
    old = make_summary(PLAN)
    series = [
        replace(old, name=f"r-{number}", series=f"s-{number}", created_timestamp=old.created_timestamp + number)
        for number in range(5)
    ]
    for each in series:
        store.put(each)
    shown, omitted = objects.latest(2)
    assert ({each.name for each in shown}, omitted) == ({"r-3", "r-4"}, 3)
    assert objects.latest(2)[0] is shown
    store.put(FIRST)
    assert objects.latest(2)[0] is shown
    store.remove("BenchmarkResult", (NAMESPACE, "r-4"))
    assert {each.name for each in objects.latest(2)[0]} == {"r-2", "r-3"}


def test_the_start_of_a_container_is_reported_once_with_its_job() -> None:
    begun_once: list[tuple[Any, Any]] = []
    store = Store()
    RunObjects(store, lambda job, pod: begun_once.append((job, pod)))
    attempt = make_attempt(PLAN)
    begun = running(attempt)
    store.put(FIRST)
    store.put(begun)  # as after a restart: its start was not observed
    assert begun_once == []
    store.remove("Pod", (NAMESPACE, begun.key.name))
    store.put(make_pod(attempt))
    store.put(begun)
    store.put(replace(begun, phase="Succeeded"))
    assert begun_once == [(FIRST, begun)]


def manifest(name: str, version: str, owner: str = UID) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": name,
            "resourceVersion": version,
            "creationTimestamp": "2026-03-01T12:00:00Z",
            "labels": {"accelbench.dev/run-uid": UID, "accelbench.dev/case": name},
            "ownerReferences": [
                {
                    "apiVersion": "accelbench.dev/v1alpha1",
                    "kind": "BenchmarkRun",
                    "name": "chain",
                    "uid": owner,
                    "controller": True,
                }
            ],
        },
        "spec": {},
    }


class ScriptedApi:
    """Answer lists and watches from a script, then wait for ever."""

    # ruff: noqa: ARG002 - the parameters are those of KubernetesApi

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, str | None]] = []
        self.exhausted = asyncio.Event()

    pages = AsyncClient.pages

    async def get(self, path: str, query: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.asked.append(("list", query.get("continue")))
        answer = await self._next()
        token, items = answer if isinstance(answer, tuple) else (None, answer)
        return {"metadata": {"resourceVersion": "10", "continue": token}, "items": items}

    async def watch(self, path: str, query: dict[str, Any], seconds: int) -> AsyncIterator[dict[str, Any]]:
        self.asked.append(("watch", query["resourceVersion"]))
        for event in await self._next():
            yield event

    async def _next(self) -> Any:
        if not self._answers:
            self.exhausted.set()
            await asyncio.Event().wait()
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def reflect(*answers: Any, pauses: list[float] | None = None) -> tuple[Store, ScriptedApi]:
    """Run a reflector against these answers; `pauses` collects the delays, which it does not sleep."""
    store, _ = new_store()
    api = ScriptedApi(*answers)

    async def sleep(seconds: float) -> None:
        if pauses is not None:
            pauses.append(seconds)

    reflector = Reflector(api, store, Owned(JOB, "", observe_job), sleep=sleep)  # type: ignore[arg-type]
    task = asyncio.create_task(reflector.run())
    async with asyncio.timeout(10):
        await api.exhausted.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return store, api


async def test_it_lists_in_pages_then_watches_from_there() -> None:
    events = [
        {"type": "ADDED", "object": manifest("c", "11")},
        {"type": "DELETED", "object": manifest("a", "12")},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}},
    ]
    store, api = await reflect(("page-2", [manifest("a", "1")]), [manifest("b", "2")], events)

    assert jobs_in(store) == {"b", "c"}
    assert api.asked == [("list", None), ("list", "page-2"), ("watch", "10"), ("watch", "20")]


async def test_an_expired_watch_is_a_new_list_that_replaces_everything() -> None:
    store, api = await reflect([manifest("a", "1")], ExpiredError(410, "too old"), [manifest("b", "2")])

    assert jobs_in(store) == {"b"}
    assert [kind for kind, _ in api.asked] == ["list", "watch", "list", "watch"]


async def test_a_list_that_the_server_refuses_is_requested_again() -> None:
    store, _ = await reflect(ApiError(500, "etcd"), [manifest("a", "1")])

    assert jobs_in(store) == {"a"}


async def test_an_unexpected_error_is_logged_with_its_traceback_and_the_objects_are_listed_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pauses: list[float] = []
    store, _ = await reflect(AttributeError("a mistake"), [manifest("a", "1")], pauses=pauses)

    assert jobs_in(store) == {"a"}
    assert len(pauses) == 1
    (record,) = (record for record in caplog.records if record.exc_info)
    assert isinstance(record.exc_info[1], AttributeError)  # type: ignore[index]


async def test_a_job_with_our_labels_and_another_owner_is_ignored() -> None:
    store, _ = await reflect([manifest("forged", "1", owner="someone-else")])

    assert jobs_in(store) == set()


async def test_an_object_that_cannot_be_read_does_not_hide_the_others() -> None:
    broken = manifest("broken", "1")
    broken["metadata"]["creationTimestamp"] = "yesterday"
    store, _ = await reflect([broken, manifest("a", "1")])

    assert jobs_in(store) == {"a"}


@pytest.mark.parametrize("answer", [[], ExpiredError(410, "too old")], ids=["closed at once", "expired"])
async def test_watches_that_end_early_are_opened_ever_less_often(answer: Any) -> None:
    pauses: list[float] = []
    lists = [[manifest("a", "1")], *([answer] if isinstance(answer, Exception) else [answer] * WATCHES_PER_LIST)]
    await reflect(*(lists * 8), pauses=pauses)

    assert len(pauses) >= 8
    assert pauses[0] <= FIRST_DELAY_SECONDS
    assert min(pauses[6:]) >= LONGEST_DELAY_SECONDS / 2
    assert max(pauses) <= LONGEST_DELAY_SECONDS


def test_the_reason_of_a_pods_removal_is_kept_until_its_job_is_deleted_too() -> None:
    store = Store()
    objects = RunObjects(store)
    attempt = make_attempt(PLAN)
    job, pod = make_job(PLAN, attempt), make_pod(attempt, disruption="EvictionByEvictionAPI: drained", node="far")
    store.put(job)
    store.put(pod)
    store.remove("Pod", (NAMESPACE, pod.key.name))
    removal = objects.observed(KEY).removals[job.key.name]
    assert removal == ("Disrupted", f"pod {pod.key.name} on node far: EvictionByEvictionAPI: drained")

    store.remove("Job", (NAMESPACE, job.key.name))
    store.put(job)
    assert objects.observed(KEY).removals == {}
