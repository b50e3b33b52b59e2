"""Programs after public comparisons of JAX and PyTorch, and how each has to end; `reports/` has them, one file each.

Those of `reports/right` compute the same on all sides. In each of `reports/wrong` one side has the mistake of the
report, or one that is often made there.
"""

from dataclasses import dataclass
from pathlib import Path

REPORTS = Path(__file__).parent / "reports"
EAGER, JIT = "pytorch/eager", "jax/jit"
BFLOAT16, FLOAT64 = "measurement.precision=bfloat16", "measurement.precision=float64"
REFUSING = {"depends-on-inputs", "formula", "parity", "precision", "work-skipped"}
"""Checks that find what is computed wrongly."""


@dataclass(frozen=True)
class Row:
    """A program, how it is run, and how it has to end: by default, no check fails, and those that matter pass."""

    program: str
    settings: tuple[str, ...] = ()
    """As `--set` takes them."""
    uses: tuple[str, ...] = ()
    """Its variants, the baseline first; by default those that are compared by default."""
    wrong: str = ""
    """The side that is wrong, if one is; the other may get the blame if it is the baseline."""
    fails: frozenset[str] = frozenset()
    """Checks that have to fail if one side is wrong; by default one of `REFUSING`, whichever."""
    untested: frozenset[str] = frozenset()
    """Checks that may be untested."""
    on_a_push: bool = False

    def __str__(self) -> str:
        return self.program

    @property
    def file(self) -> Path:
        """Where the program stands."""
        return REPORTS / ("wrong" if self.wrong else "right") / f"{self.program}.py"


def right(program: str, *settings: str, untested: tuple[str, ...] = (), on_a_push: bool = False) -> Row:
    """Return the row of a program that computes the same on all sides."""
    return Row(program, settings, untested=frozenset(untested), on_a_push=on_a_push)


def wrong(
    program: str,
    use: str,
    *settings: str,
    uses: tuple[str, ...] = (),
    fails: tuple[str, ...] = (),
) -> Row:
    """Return the row of a program whose side `use` is wrong."""
    return Row(program, settings, uses, use, frozenset(fails))


ROWS: tuple[Row, ...] = (
    right("cnn_training"),
    right("complex_matvec"),
    right("depthwise"),
    right("dqn_update"),
    # In float64 other numbers are drawn, and the generators do not take as many operations.
    right("draw_categories", untested=("formula", "work-present")),
    # A variant that compiles its step itself has operations that cannot be counted.
    right("embedding_classifier", BFLOAT16, untested=("work-present",)),
    right("embedding_gradient"),
    right("graph_attention", "nodes=500", "edges=4000"),
    right("greedy_cache"),
    right("heat_lines", "points=300", "steps=10"),
    right("heston_paths"),
    right("hmc_leapfrog"),
    right("hvp_modes"),
    right("ising_checkerboard"),
    right("jacrev_oracle", untested=("work-present",)),
    # What is associative takes more operations.
    right("kalman_scans", untested=("work-present",)),
    right("knn_bruteforce", on_a_push=True),
    right("molecular_forces"),
    right("logdet_hessian"),
    right("lstm_port"),
    right("mandelbrot"),
    right("mnist_mlp", "batch=16"),
    right("mps_classifier"),
    right("nbody_verlet"),
    right("norm_mlp", "rows=64", BFLOAT16),
    right("own_gradient"),
    right("pca_svd"),
    right("pinn_heat"),
    right("poisson_network"),
    right("ppo_update"),
    right("residual_groupnorm", BFLOAT16),
    right("resize_bicubic", untested=("work-present",)),  # JAX resizes by dense products
    right("rmsprop_step"),
    right("sea_water", FLOAT64),
    right("sigma_clip"),
    right("sinkhorn"),
    # A batch of another shape takes other operations.
    right("sinkhorn_parcels", untested=("work-present",)),
    right("sliced_product"),
    right("slide_2048"),
    right("sos_filter"),
    right("vae_modules"),
    right("value_iteration"),
    right("warp_image", "size=64"),
    wrong("actor_gradient", EAGER),
    wrong("adam_plain", EAGER),
    wrong("advantages", EAGER),
    wrong("asian_greeks", JIT),
    wrong("captured_signal", JIT, fails=("depends-on-inputs",)),
    wrong("clipped_training", JIT),
    wrong("evaluation_loss", JIT, fails=("parity",)),
    wrong("gelu_gate", JIT),
    wrong("gp_cached", EAGER, fails=("parity",)),  # "depends on earlier calls"
    wrong("half_policy", EAGER, fails=("precision",)),
    wrong("int8_weights", EAGER, uses=(JIT, EAGER)),
    wrong("inverse_3x3", "pytorch_cofactors/eager"),
    wrong("last_batch", JIT),
    wrong("layernorm_bf16", JIT, fails=("formula",)),
    wrong("lensing_weights", EAGER),
    wrong("life_edges", EAGER, fails=("parity",)),
    wrong("mask_rows", JIT),
    wrong("padding_mask", "pytorch_sdpa/eager"),
    wrong("policy_loss", JIT),
    wrong("rmsprop_epsilon", JIT),
    wrong("running_variance", JIT),
    wrong("strided_stem", JIT),
)
