"""Rows of the table that accelbench does not live up to yet."""

NOT_YET: frozenset[str] = frozenset(
    {
        "exports_the_answer pytorch/eager",
        "exports_the_answer jax/jit",
        "recognises_its_input pytorch/eager",
        "recognises_its_input jax/jit",
        "pretends_to_work pytorch/eager",
        "pretends_to_work jax/op-by-op",
        "remembers_and_copies pytorch/eager",
        "remembers_and_copies jax/op-by-op",
        "works_after_a_pause jax/op-by-op",
        "works_at_the_start_of_a_block pytorch/eager",
        "works_at_the_start_of_a_block jax/jit",
        "takes_steps_too_small_to_see pytorch/eager",
        "takes_steps_too_small_to_see jax/jit",
        "exports_nothing pytorch/eager",
        "exports_nothing jax/jit",
        "exports_an_empty_array pytorch/eager",
        "exports_an_empty_array jax/jit",
        "counts_each_step_ten_times pytorch/eager",
        "counts_each_step_ten_times jax/jit",
        "works_three_times pytorch/eager",
        "slows_its_rival pytorch/eager",
        "declares_no_cost pytorch/eager",
        "declares_no_cost jax/jit",
    }
)
