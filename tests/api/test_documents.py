"""Documents share the sets of their given fields, without visible effect."""

from hypothesis import example, given
from hypothesis import strategies as st

from accelbench.api.run import Rounds, Variant
from accelbench.document import shorten


def test_documents_that_were_given_the_same_fields_share_the_set_of_them() -> None:
    first, second = Rounds(min=3, max=5), Rounds(min=4, max=6)
    assert first.model_fields_set is second.model_fields_set
    assert first.model_fields_set == {"min", "max"}
    assert Rounds(min=3).model_fields_set == {"min"}


def test_a_changed_copy_changes_no_other_document() -> None:
    first, second = Variant(use="jax/jit"), Variant(use="pytorch/eager")
    copy = first.model_copy(update={"name": "mine"})
    assert copy.model_fields_set == {"use", "name"}
    assert first.model_fields_set == second.model_fields_set == {"use"}
    assert second.model_dump(exclude_unset=True) == {"use": "pytorch/eager"}


@given(st.text("ab .;", max_size=60), st.integers(0, 70))
@example("a", 0)
@example("ab", 1)
def test_a_shortened_text_fits_and_is_the_beginning_of_the_whole(text: str, maximum: int) -> None:
    short = shorten(text, maximum)
    assert len(short) <= maximum
    if len(text) <= maximum:
        assert short == text
    else:
        assert text.startswith(short.removesuffix("…").rstrip())


def test_a_text_is_cut_after_a_sentence_or_a_word() -> None:
    text = "it fails: write a reference(). The whole traceback follows here, and it is long"
    assert shorten(text, 50) == "it fails: write a reference(). …"
    assert shorten(text, 25) == "it fails: write a …"
    assert shorten("x" * 50, 10) == "x" * 8 + " …"
