from typing import Any

import pytest

from accelbench.api.case import Case, CaseAccelerator, CaseMeasurement, CaseVariant
from accelbench.document import Document
from accelbench.history import comparability
from accelbench.history.runs import RunComparison, compare
from accelbench.history.sample import Side
from history.runs import run


def compared(before: dict[str, Any], after: dict[str, Any], *allowed: str) -> RunComparison:
    return compare(Side("A", (run(**before),)), Side("B", (run(**after),)), allowed)


DIFFERENT = {
    "source": ({"fingerprint": {"workloadSource": "a"}}, {"fingerprint": {"workloadSource": "b"}}, "source"),
    "a parameter": ({"parameters": {"size": 256}}, {"parameters": {"size": 512}}, "parameters"),
    "a default of a parameter": ({}, {"fingerprint": {"parameter.depth": "3"}}, "parameters"),
    "precision": ({}, {"measurement": CaseMeasurement(precision="tf32", rounds_max=5)}, "precision"),
    "seed": ({}, {"measurement": CaseMeasurement(seed=1, rounds_max=5)}, "seed"),
    "the processor": ({}, {"fingerprint": {"cpu": "another"}}, "hardware"),
    "the GPU": ({"fingerprint": {"device.name": "A100"}}, {"fingerprint": {"device.name": "H100"}}, "hardware"),
    "its memory": ({"fingerprint": {"device.ecc": "1"}}, {"fingerprint": {"device.ecc": "2"}}, "hardware"),
    "its driver": ({"fingerprint": {"device.driver": "580"}}, {"fingerprint": {"device.driver": "590"}}, "versions"),
    "processors": ({}, {"fingerprint": {"cpusUsed": "1"}}, "limits"),
    "a framework": ({}, {"fingerprint": {"version.jax": "0.11"}}, "versions"),
    "an environment": ({"fingerprint": {"variant.a.lock": "1"}}, {"fingerprint": {"variant.a.lock": "2"}}, "variants"),
    "a variable that is set": ({}, {"fingerprint": {"env.XLA_FLAGS": "--x"}}, "environment"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "group"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_a_relevant_difference_is_refused_until_allowed_and_then_mentioned(
    before: dict[str, Any], after: dict[str, Any], group: str
) -> None:
    found = compared(before, after)
    assert [each.group for each in found.refused] == [group]
    assert found.changes == ()
    [refused] = found.refused
    for name in (group, refused.name):
        insisted = compared(before, after, name)
        assert insisted.refused == ()
        assert all(f"although these differ: {refused.name}." in each.sentence for each in insisted.changes)
        assert all(each.verdict == "equivalent" for each in insisted.changes)


def test_allowing_one_difference_allows_no_other() -> None:
    before, after = {}, {"fingerprint": {"version.jax": "0.11", "cpu": "another"}}
    assert [each.name for each in compared(before, after, "versions").refused] == ["cpu"]
    assert [each.name for each in compared(before, after, "version.torch").refused] == ["cpu", "version.jax"]


def test_an_irrelevant_difference_is_listed_and_not_refused() -> None:
    given = {"kernel": "7.0", "image": "sha256:b", "device.uuid": "GPU-2", "env.NVIDIA_VISIBLE_DEVICES": "GPU-2"}
    found = compared({"fingerprint": dict.fromkeys(given, "x")}, {"fingerprint": given})
    assert found.refused == ()
    assert {each.name for each in found.differences} == set(given)
    assert "although" not in found.changes[0].sentence


def test_an_entry_that_one_side_did_not_record_is_listed_and_not_refused() -> None:
    found = compared({}, {"fingerprint": {"version.triton": "3.9"}})
    assert found.refused == ()
    assert [(each.name, each.before, each.after) for each in found.differences] == [("version.triton", (), ("3.9",))]


def test_a_variant_with_another_option_is_another_variant() -> None:
    def with_option(option: str) -> Any:
        case = run().case
        variants = (case.variants[0], CaseVariant(name="jax/jit", use="jax/jit", options={"mode": option}))
        return run(case=case.model_copy(update={"variants": variants}))

    found = compare(Side("A", (with_option("a"),)), Side("B", (with_option("b"),)))
    assert [each.name for each in found.refused] == ["variant.jax/jit"]


def test_a_variant_in_an_environment_is_another_variant_regardless_of_the_environments_name() -> None:
    def in_environment(name: str | None) -> Side:
        case = run().case
        variants = (case.variants[0], CaseVariant(name="jax/jit", use="jax/jit", environment=name))
        return Side("A", (run(case=case.model_copy(update={"variants": variants})),))

    [refused] = compare(in_environment(None), in_environment("before")).refused
    assert (refused.name, refused.group) == ("variant.jax/jit", "variants")
    assert compare(in_environment("before"), in_environment("old")).refused == ()


def test_times_of_different_protocols_are_never_compared() -> None:
    found = compared({}, {"protocol": "episode"}, "protocol")
    assert [each.name for each in found.refused] == ["protocol"]


def test_a_series_whose_own_results_differ_is_refused_too() -> None:
    series = tuple(run(day=day, fingerprint={"version.jax": version}) for day, version in ((1, "0.10"), (2, "0.11")))
    found = compare(Side("A", series), Side("B", series))
    assert [(each.name, each.before) for each in found.refused] == [("version.jax", ("0.10", "0.11"))]


class Tuned(CaseMeasurement):
    """Stands for a measurement that got another field."""

    warm_up_seconds: int = 0


class Placed(CaseAccelerator):
    """Stands for an accelerator that got another field."""

    nodes: int = 1


class Patched(CaseVariant):
    """Stands for a variant that got another field."""

    patch: str | None = None


class Repeated(Case):
    """Stands for a case that got another field."""

    repetitions: int = 1


EAGER = CaseVariant(name="pytorch/eager", use="pytorch/eager")


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("warmUpSeconds", {"measurement": Tuned()}, {"measurement": Tuned(warm_up_seconds=600)}),
        ("nodes", {"accelerator": Placed()}, {"accelerator": Placed(nodes=2)}),
        (
            "variant.jax/jit",
            {"variants": (EAGER, Patched(name="jax/jit", use="jax/jit"))},
            {"variants": (EAGER, Patched(name="jax/jit", use="jax/jit", patch="a"))},
        ),
    ],
)
def test_a_new_field_of_a_case_is_relevant(name: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    both = [run(case=run().case.model_copy(update=changes)) for changes in (before, after)]
    found = compare(Side("A", (both[0],)), Side("B", (both[1],)))
    assert [each.name for each in found.refused] == [name]
    assert found.changes == ()
    assert compare(Side("A", (both[0],)), Side("B", (both[1],)), [name]).refused == ()


def test_a_new_field_of_the_case_document_is_relevant() -> None:
    both = [run(case=Repeated(**{**dict(run().case), "repetitions": number})) for number in (1, 3)]
    found = compare(Side("A", (both[0],)), Side("B", (both[1],)))
    assert [each.name for each in found.refused] == ["repetitions"]


def test_a_new_entry_of_a_fingerprint_is_relevant() -> None:
    found = compared({"fingerprint": {"coolant": "air"}}, {"fingerprint": {"coolant": "water"}})
    assert [(each.name, each.group) for each in found.refused] == [("coolant", "coolant")]


@pytest.mark.parametrize("document", comparability.NOT_COMPARED)
def test_every_field_that_is_not_compared_exists_and_has_a_reason(document: type[Document]) -> None:
    exceptions = comparability.NOT_COMPARED[document]
    assert exceptions.keys() <= document.model_fields.keys()
    assert all(exceptions.values())


def test_bytes_are_shown_in_gibibytes_unless_both_sides_would_look_the_same() -> None:
    def shown(before: int, after: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        sides = ({"fingerprint": {"memoryLimitBytes": str(value)}} for value in (before, after))
        [found] = compared(*sides).refused
        return found.formatted

    assert shown(2**33, 2**34) == (("8 GiB",), ("16 GiB",))
    assert shown(2**33, 2**33 + 1) == (("8589934592",), ("8589934593",))
