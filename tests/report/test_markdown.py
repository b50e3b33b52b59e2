from accelbench.report import markdown
from report import sample


def test_the_report_has_a_table_that_markdown_reads() -> None:
    text = markdown.report("matmul-chain", [(sample.result(), ())])
    assert text.startswith("# matmul-chain\n\n## matmul-chain (size 512, length 100), float32, cpu\n")
    assert "| jax/jit | 574 µs | ± 0.4 % | 2.04x | 2.01 to 2.07 | faster |" in text
    assert "| jax/jit | after 1,240 products (1,180 to 1,310) | 181 ms |" in text
    assert "| jax/jit | 230 GFLOP/s | 2.70 GB/s | 93 % compute | 312 MB | 95.0 MB |" in text
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) == 5
    for table in tables:
        assert len({line.count("|") for line in table}) == 1


def test_nothing_in_a_message_becomes_markup() -> None:
    result = sample.result(notes=("<img src=x> *x* a|b `code`\nnext",))
    text = markdown.report("run", [(result, ())])
    assert "- \\<img src=x\\> \\*x\\* a|b \\`code\\` next" in text


def test_a_run_without_a_result_says_so() -> None:
    assert markdown.report("run", []) == "# run\n\nNo case has a result.\n"
