"""Test that the largest run's result fits the limit; a larger one loses quantiles only, or is refused."""

from collections.abc import Iterator

import pytest

from accelbench.api.environment import CaseEnvironment
from accelbench.api.result import MAXIMUM_BYTES, Result, VariantResult
from accelbench.api.run import MAXIMUM_ROUNDS, MAXIMUM_VARIANTS
from accelbench_runner.supervisor.assemble import limit_size
from delivery.largest import result_of


def size(result: Result) -> int:
    return len(result.to_json().encode())


def without_quantiles(variants: tuple[VariantResult, ...]) -> Iterator[VariantResult]:
    for variant in variants:
        launches = [launch.model_copy(update={"p5_seconds": None, "p95_seconds": None}) for launch in variant.launches]
        yield variant.model_copy(update={"launches": tuple(launches)})


def test_the_result_of_the_largest_run_is_kept_whole() -> None:
    result = result_of(MAXIMUM_VARIANTS, MAXIMUM_ROUNDS)
    assert size(result) > 0.7 * MAXIMUM_BYTES
    assert limit_size(result) is result


def test_a_larger_result_omits_only_the_quantiles_of_each_launch() -> None:
    result = result_of(MAXIMUM_VARIANTS, MAXIMUM_ROUNDS, characters=500)
    assert size(result) > MAXIMUM_BYTES
    limited = limit_size(result)
    assert size(limited) <= MAXIMUM_BYTES
    assert limited == result.model_copy(
        update={"variants": tuple(without_quantiles(result.variants)), "notes": limited.notes}
    )
    assert len(limited.notes) == len(result.notes) + 1


def test_a_larger_result_omits_the_packages_of_environments_first() -> None:
    result = result_of(MAXIMUM_VARIANTS, MAXIMUM_ROUNDS)
    packages = {f"package-{number}": "1.2.3" for number in range(4000)}
    environment = CaseEnvironment(name="own", interpreter="/own/bin/python", packages=packages, lock_digest="0a1b")
    large = result.model_copy(update={"case": result.case.model_copy(update={"environments": (environment,)})})
    assert size(large) > MAXIMUM_BYTES
    limited = limit_size(large)
    assert size(limited) <= MAXIMUM_BYTES
    assert limited.case.environments == (environment.model_copy(update={"packages": {}}),)
    assert limited.variants == result.variants


def test_a_result_with_long_readings_shortens_them_too() -> None:
    result = result_of(MAXIMUM_VARIANTS, MAXIMUM_ROUNDS, characters=1000)
    limited = limit_size(result)
    assert size(limited) <= MAXIMUM_BYTES
    assert limited.comparisons == result.comparisons
    assert limited.variants == tuple(without_quantiles(result.variants))
    for check, whole in zip(limited.certificate.checks, result.certificate.checks, strict=True):
        assert check.reading.endswith(" …")
        assert whole.reading.startswith(check.reading.removesuffix(" …"))
    assert limited.notes[-1].endswith("the spread inside each launch; the ends of long texts")


def test_a_result_that_stays_too_large_is_refused_with_the_remedy() -> None:
    result = result_of(MAXIMUM_VARIANTS, 4 * MAXIMUM_ROUNDS)
    with pytest.raises(ValueError, match=rf"{MAXIMUM_BYTES} are the limit: .*measurement\.rounds\.max"):
        limit_size(result)
