"""Documents share the sets of fields that they were given, and nobody can tell."""

from accelbench.api.run import Rounds, Variant


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
