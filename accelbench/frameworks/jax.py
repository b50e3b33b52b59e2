"""Describe JAX: compiled by XLA, or dispatched operation by operation."""

from accelbench.frameworks.descriptor import Framework, Mode

FRAMEWORK = Framework(
    name="jax",
    title="JAX",
    package="jax",
    extra="jax",
    modes={
        "jit": Mode("One compiled program; the steps of a call are unrolled."),
        "op-by-op": Mode("Without jit: every operation is compiled and dispatched on its own."),
        "scan": Mode("One compiled program; the steps of a call are a loop inside it (lax.scan)."),
    },
    adapter="accelbench_runner.frameworks.jax:Jax",
    platforms=("cpu", "cuda", "tpu"),
    oldest="0.7",
    own=frozenset({"jax", "jaxlib", "flax", "optax", "orbax"}),
    returns_dataclasses=False,
    caches={"JAX_COMPILATION_CACHE_DIR": "jax"},
    # By default JAX does not cache programs that compile in under a second.
    environment={
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    },
)
