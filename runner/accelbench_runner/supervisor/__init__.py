"""Run one case: start launches in rounds, ask the judge after each round, deliver a result. Import no numpy."""
