"""Careless and cheating programs in `programs/`, one file each, with the finding that each requires."""

from dataclasses import dataclass

from accelbench.api.case import ParameterValue
from accelbench.api.result import FailureReason
from cheats.trials import Asked

JIT, OPS, SCAN, EAGER, NUMPY = "jax/jit", "jax/op-by-op", "jax/scan", "pytorch/eager", "numpy/eager"

INPUTS = ("depends-on-inputs", "parity", "work-skipped")
MEMO = ("work-skipped", "depends-on-inputs", "work-present")
LATER = ("unsynchronised", "parity", "non-finite")


@dataclass(frozen=True)
class Row:
    """Hold the finding that a variant requires. Without `fails`, `unchecked` and `ends`, no check may fail."""

    program: str
    use: str
    fails: tuple[str, ...] = ()
    """One of these checks has to fail."""
    unchecked: str = ""
    """This check has to be neither passed nor failed, and a verdict has to say so; beside `fails`, where none did."""
    ends: FailureReason | None = None
    """The launch has to fail, for this reason."""
    says: str = ""
    """In the readings of the checks that are named above, in the failure's message, or in the sentence."""
    parameters: tuple[tuple[str, ParameterValue], ...] = ()
    precision: str = "float32"
    skipped: str = ""
    """Why it cannot run here."""

    def __str__(self) -> str:
        chosen = [str(value) for _, value in self.parameters]
        return " ".join([self.program, *chosen, self.use])


def _both(program: str, *uses: str, **expected: object) -> tuple[Row, ...]:
    return tuple(Row(program, use, **expected) for use in uses)  # type: ignore[arg-type]


ROWS: tuple[Row, ...] = (
    # Honest programs: false alarms
    *_both("honest_relaxation", EAGER, JIT, OPS, SCAN),
    *_both("updates_in_place", EAGER, JIT),
    *_both("writes_into_its_own_buffer", EAGER),
    *_both("multiplies_cleverly", EAGER, JIT),
    *_both("starts_from_ones", EAGER, JIT),
    *_both("gathers_rows", EAGER, JIT),
    *_both("needs_no_gradients", EAGER),
    *_both("forgets_no_grad", EAGER),
    *_both("reassociates", EAGER),
    Row("reassociates", JIT, unchecked="work-present", says="better algorithm"),
    Row("repeats_a_step_without_state", EAGER),
    *_both("decomposes_a_constant_matrix", EAGER, JIT),
    *_both("iterates_until_it_converges", EAGER, unchecked="formula"),
    *_both("trains_a_module", EAGER, JIT),
    Row("computes_a_gradient", EAGER),
    *_both("differentiates_functions", EAGER, JIT),
    *_both("takes_a_monic_polynomial", EAGER, JIT),
    Row("computes_a_gradient_inside", EAGER),
    *_both("keeps_a_key", JIT),
    *_both("adds_in_numpy", NUMPY, JIT),
    *_both("draws_its_shapes", EAGER, JIT, unchecked="depends-on-inputs"),
    *_both("counts_whole_numbers", EAGER, JIT, unchecked="depends-on-inputs"),
    Row("accumulates_gradients", EAGER),
    Row("branches_on_data", EAGER),
    Row("multiplies_sparsely", EAGER),
    *_both("takes_a_gradient", EAGER, JIT, OPS),
    *_both("solves_systems", EAGER, JIT, OPS),
    *_both("sums_by_segment", EAGER, JIT, OPS),
    Row("infers_in_inference_mode", EAGER),
    *_both("turns_its_axes", EAGER, JIT),
    # Inputs that are not looked at
    *_both("ignores_its_state", EAGER, JIT, OPS, fails=INPUTS),
    *_both("captures_its_batch", EAGER, JIT, fails=("depends-on-inputs",), says="unseen"),
    *_both("captures_everything", EAGER, JIT, fails=("depends-on-inputs",), says="unseen"),
    Row("captures_its_weights", EAGER, fails=("depends-on-inputs",), says="unseen"),
    Row("captures_its_weights", JIT, fails=("depends-on-inputs",), says="captured"),
    *_both("captures_its_ones", EAGER, JIT, fails=("depends-on-inputs",), says="unseen"),
    *_both("starts_from_zeros", EAGER, JIT, fails=("depends-on-inputs",), says="unseen"),
    *_both("forgets_its_bias", EAGER, JIT, fails=("depends-on-inputs",), says="unseen"),
    *_both("looks_at_its_shape_alone", EAGER, JIT, fails=INPUTS),
    *_both("does_not_depend_on_its_input", EAGER, JIT, unchecked="depends-on-inputs"),
    *_both("does_many_units_in_one_step", EAGER, JIT, fails=INPUTS),
    *_both("ignores_its_input_in_an_episode", EAGER, JIT, fails=("depends-on-inputs",)),
    *_both("looks_up_a_table", EAGER, JIT, fails=INPUTS),
    *_both("exports_the_answer", EAGER, JIT, fails=INPUTS),
    *_both("computes_while_it_is_built", EAGER, OPS, fails=("depends-on-inputs",)),
    *_both("keeps_its_weights_in_itself", EAGER, JIT, fails=("depends-on-inputs",), says="unseen"),
    # Answers that are remembered
    *_both("returns_its_last_result", EAGER, OPS, fails=MEMO),
    *_both("memoises_on_identity", EAGER, OPS, fails=MEMO),
    *_both("memoises_on_value", EAGER, OPS, fails=MEMO),
    *_both("memoises_with_lru_cache", EAGER, OPS, fails=MEMO),
    *_both("sleeps_to_look_busy", EAGER, OPS, fails=MEMO),
    *_both("answers_from_a_memo", EAGER, OPS, fails=MEMO),
    Row("keeps_its_answers_on_disk", EAGER, fails=MEMO),
    Row("keeps_its_answers_on_disk", OPS, unchecked="work-skipped"),
    Row("recognises_its_input", EAGER, fails=MEMO),
    Row("recognises_its_input", JIT, unchecked="work-present"),
    Row("calls_back_to_a_memo", JIT, unchecked="work-present"),
    Row("memoises_half_in_a_callback", JIT, unchecked="work-present"),
    Row("remembers_in_its_state", EAGER, fails=MEMO),
    Row("remembers_a_slow_answer", EAGER, fails=("work-skipped",)),
    *_both("pretends_to_work", EAGER, OPS, unchecked="work-present"),
    *_both("knows_what_it_will_be_asked", EAGER, OPS, unchecked="work-present"),
    *_both("remembers_and_copies", EAGER, OPS, fails=MEMO),
    Row("remembers_its_arrays", NUMPY, fails=("work-skipped",)),
    # Work that is not done
    *_both("returns_its_state", EAGER, JIT, fails=("parity",)),
    *_both("donates_and_returns_it", EAGER, JIT, fails=("parity",)),
    *_both("computes_half", EAGER, JIT, fails=("parity",)),
    *_both("skips_every_second_call", EAGER, OPS, fails=INPUTS),
    *_both("skips_every_tenth_call", EAGER, OPS, fails=INPUTS),
    *_both("skips_later_calls", EAGER, OPS, fails=INPUTS, parameters=(("calls", 3),)),
    *_both("skips_later_calls", EAGER, OPS, fails=INPUTS, parameters=(("calls", 50),)),
    *_both("skips_later_calls", EAGER, OPS, fails=INPUTS, parameters=(("calls", 150),)),
    *_both("stops_after_a_while", EAGER, OPS, fails=INPUTS),
    Row("works_at_the_start_of_a_block", EAGER, fails=INPUTS),
    Row("works_at_the_start_of_a_block", JIT, unchecked="work-present"),
    *_both("takes_steps_too_small_to_see", EAGER, JIT, unchecked="parity"),
    Row("forgets_to_step", JIT, fails=("formula",)),
    Row("stops_when_converged", EAGER, fails=INPUTS),
    Row("stops_when_converged", JIT),
    *_both("exports_nothing", EAGER, JIT, fails=("parity", "depends-on-inputs")),
    *_both("exports_an_empty_array", EAGER, JIT, fails=("parity", "depends-on-inputs")),
    *_both("declares_nothing_to_do", EAGER, JIT, fails=INPUTS),
    Row("drops_its_work", JIT, fails=("work-present",), says="dropped"),
    Row("drops_its_work", EAGER),
    Row("repeats_one_product", JIT, fails=("work-present",), says="hoisted"),
    Row("repeats_one_product", EAGER),
    *_both("repeats_a_step_without_state", JIT, SCAN, fails=("work-present",), says="hoisted"),
    *_both("counts_each_step_ten_times", EAGER, JIT, unchecked="work-present", says="work left out"),
    *_both("counts_each_step_twice", EAGER, JIT, unchecked="work-present", says="claims to do 2 units"),
    Row("works_three_times", EAGER, unchecked="work-present", says="3"),
    Row("works_three_times", JIT),
    Row("slows_its_rival", EAGER, unchecked="work-present", says="idle"),
    Row("slows_its_rival", JIT),
    *_both("declares_no_cost", EAGER, JIT),
    # Work that looks whether it is timed
    *_both("looks_at_the_stack", EAGER, OPS, fails=INPUTS),
    *_both("looks_at_file_names", EAGER, OPS, fails=INPUTS),
    *_both("looks_at_the_number_of_calls", EAGER, OPS, fails=INPUTS),
    *_both("works_when_it_is_timed", EAGER, OPS, fails=("parity",)),
    *_both("looks_for_the_examiner", EAGER, OPS, fails=INPUTS),
    *_both("looks_at_the_garbage_collector", EAGER, OPS, fails=INPUTS),
    *_both("slows_the_clock", EAGER, JIT),  # whatever it replaces: blocks are timed by the clock's own functions
    *_both("slows_the_clock", EAGER, JIT, parameters=(("also_raw", True),)),
    *_both("replaces_the_timer", EAGER, JIT, fails=("clock",)),
    # Work that is done elsewhere, or later
    *_both("returns_a_future", EAGER, OPS, ends="Raised", says="nothing waits"),
    # A thread that is quick enough is not late; its work is nowhere to be counted all the same.
    *_both("works_in_a_thread", EAGER, OPS, fails=(*LATER, "work-skipped"), unchecked="work-skipped"),
    *_both("works_in_a_process", EAGER, OPS, unchecked="work-present"),
    *_both("returns_a_promise", EAGER, OPS, ends="Raised", says="nothing waits"),
    *_both("returns_an_object", EAGER, OPS, ends="Raised", says="recursion"),
    *_both("works_in_its_export", EAGER, JIT, fails=(*LATER, "work-skipped")),
    Row("finishes_in_its_export", JIT, unchecked="work-skipped"),
    Row("works_on_a_side_stream", EAGER, fails=LATER, skipped="needs a CUDA device"),
    *_both("computes_in_numpy", EAGER, OPS, unchecked="work-present"),
    # Other arithmetic
    *_both("computes_in_bfloat16", EAGER, JIT, fails=("parity",)),
    *_both("truncates_its_operands", EAGER, JIT, fails=("parity",)),
    Row("brings_its_own_arrays", EAGER, fails=("precision",), says="float64"),
    Row("brings_its_own_arrays", JIT),
    *_both("sets_flags_of_its_own", EAGER, JIT, unchecked="precision", says="XLA_FLAGS"),
    *_both("exports_classes_alone", EAGER, JIT, fails=("precision", "parity")),
    *_both("changes_the_precision", EAGER, JIT, fails=("precision",)),
    *_both("changes_the_threads", EAGER, fails=("threads",)),
    *_both("turns_gradients_on", EAGER, fails=("gradients",)),
    *_both("records_gradients_inside", EAGER, fails=("gradients",)),
    Row("differentiates_a_trifle", EAGER, fails=("gradients",), says="differentiated"),
    Row("exports_a_complex_sum", EAGER),
    Row("exports_a_complex_sum", JIT, fails=("parity",)),
    Row("exports_a_spectrum", EAGER),
    Row("exports_a_spectrum", JIT, fails=("parity",)),
    Row("overflows_an_integer", JIT, fails=("parity",)),
    Row("overflows_an_integer", EAGER),
    *_both("overflows_float16", EAGER, JIT, fails=("non-finite",), says="bfloat16", precision="float16"),
    # What is held against what
    *_both("is_not_a_number", EAGER, JIT, fails=("non-finite",)),
    *_both("is_not_a_number", EAGER, JIT, unchecked="parity", parameters=(("declared", True),)),
    *_both("has_a_wrong_reference", EAGER, JIT, fails=("parity",), says="agree"),
    Row("copies_its_reference", JIT, fails=("parity",)),
    Row("copies_its_reference", EAGER, unchecked="parity", says="torch"),
    *_both("compares_nothing", EAGER, JIT, unchecked="parity", says="gives the same for other numbers in x"),
    *_both("blurs_its_reference", EAGER, JIT, fails=("parity",)),
    *_both("counts_its_calls", EAGER, JIT, fails=INPUTS),
    *_both("keeps_what_it_has_seen", EAGER, OPS, fails=INPUTS),
    *_both("draws_its_own_numbers", EAGER, JIT, fails=("parity",)),
    Row("sums_the_wrong_axis", JIT, fails=("parity",)),
    Row("sums_the_wrong_axis", EAGER),
    *_both("returns_another_shape", EAGER, JIT, fails=("parity",), says="shape"),
    # Ends
    *_both("returns_nothing", EAGER, JIT, ends="Raised", says="line"),
    Row("uses_what_it_gave_away", OPS, ends="Raised", says="delete"),
    *_both("prints_a_megabyte", EAGER, OPS, skipped="a note says it: tests/runner/test_output.py"),
    *_both("ends_itself", EAGER, OPS, ends="Raised", says="line", parameters=(("by", "raise"),)),
    *_both("ends_itself", EAGER, OPS, ends="Raised", says="SystemExit", parameters=(("by", "sys.exit"),)),
    *_both("ends_itself", EAGER, OPS, ends="InvalidOutput", says="os._exit", parameters=(("by", "os._exit"),)),
    *_both("ends_itself", EAGER, OPS, ends="Killed", says="SIGSEGV", parameters=(("by", "segfault"),)),
)


def trial_of(row: Row) -> Asked:
    """Return the program with all variants that have a row in the table."""
    alike = (each for each in ROWS if (each.program, each.parameters) == (row.program, row.parameters))
    uses = tuple(each.use for each in alike if not each.skipped)
    return Asked(row.program, uses, row.parameters, row.precision)
