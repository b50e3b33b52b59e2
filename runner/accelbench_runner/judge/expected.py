"""Find out how far each output of a correct program may lie from the float64 reference.

Only the reference is asked, never a variant, so a wrong variant cannot widen its own tolerance. The reference runs in
float64 on the case's inputs, then several times in three other ways, and every run is an example of what a correct
program may return:

- on inputs that are moved up or down by one ulp (unit in the last place) of the policy's type: what one ulp of the
  inputs does to each output;
- in the policy's own type: what the roundings inside the program do;
- in float64 with every operation's result moved by up to one ulp: the same, where a function is so flat that moved
  inputs leave every rounding as it is.

The scale of an output is the largest root mean square of its moves in the three ways, and at least the median of
outputs of like size: eight moves may cancel in one output, and its neighbours show it; a few large outputs cannot
speak for all others. Where a further run moves an output much further than all others, it chose: relu at zero, or the
larger of two equal numbers. Good, "The Population Frequencies of Species and the Estimation of Population Parameters"
(1953), estimates from the choices that a single run made how many a further program makes elsewhere.

docs/method/parity-by-element.md has the reasons and the measured errors.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from accelbench.api.case import Precision
from accelbench.workload import Array
from accelbench_runner.judge.arithmetic import EPSILON, SMALLEST, is_float

ELEMENT_SCALES: Mapping[Precision, float] = {"float64": 64, "float32": 32, "tf32": 12, "bfloat16": 5, "float16": 12}
"""Maximum error of one output, in scales."""
BULK_SCALES: Mapping[Precision, float] = {"float64": 20, "float32": 20, "tf32": 3, "bfloat16": 2, "float16": 3}
"""Maximum median of the errors of outputs of like size, in scales: a median varies less, and a wrong formula moves
every output."""
OWN_ULPS: Mapping[Precision, float] = {"float64": 0.5, "float32": 0.5, "tf32": 0.25, "bfloat16": 0.25, "float16": 0.25}
"""Part of a scale in units in the last place of the output itself, because it is rounded at least once."""
SUM_ULPS: Mapping[Precision, float] = {
    "float64": 0.15,
    "float32": 0.15,
    "tf32": 0.02,
    "bfloat16": 0.02,
    "float16": 0.02,
}
"""Growth of a sum's rounding error with the square root of its terms, in units in the last place of the sum."""
MINIMUM_OTHER_RUNS = 3
"""Minimum number of other runs whose moves show how far a run may move an output without a leap."""
CLASS_ELEMENTS = 64
"""Minimum number of outputs of like size whose median means something."""
PART_ELEMENTS = 2**18
"""Number of elements that are handled at once, so that intermediate arrays take little memory."""
CLASSES_PER_DECADE = 2
NEGLIGIBLE_SIZE = 1e-6
"""Size below which outputs are in the smallest class, as a share of the median size."""
MAXIMUM_LEAPING_SHARE = 1e-4
"""Maximum share of floats that leap in a run. If more do, these are no choices: the scale is too small for some."""
MAXIMUM_CHANCE = 0.1
"""Share of integers that one ulp changes, above which they are chance and cannot be compared."""
MAXIMUM_CHOOSING_SHARE = 0.01
"""Maximum share of outputs that may choose otherwise."""
UNSEEN_CHOICES_FACTOR = 4.0
"""Maximum of choices in places where no run of the reference chose, as a multiple of their expected number."""
MANY_ELEMENTS = 1000
"""Number of integers from which one more than the expected choices is allowed."""


def _parts(size: int) -> Iterator[slice]:
    """Yield slices of at most `PART_ELEMENTS` elements that cover an array."""
    for start in range(0, size, PART_ELEMENTS):
        yield slice(start, start + PART_ELEMENTS)


@dataclass(frozen=True)
class Choices:
    """Hold where runs of the reference chose otherwise than the reference.

    Attributes:
        runs: Number of runs.
        once: Number of outputs that exactly one run changed.
        share: Share of the outputs that a run changed, on average.
        most: Largest number of integers that a run changed.
        farthest: Largest distance of a changed output from the reference.
        positions: Flat indexes of changed integers, one for each run that changed it.
        values: What the run returned there.
    """

    runs: int = 0
    once: int = 0
    share: float = 0.0
    most: int = 0
    farthest: float = 0.0
    positions: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    values: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def allowed(self) -> int:
        """Return how many outputs may change where no run changed them.

        A program that adds in another order changes about as many integers as a run of the reference, but others. After
        Good (1953), `once / runs` is the number of those that a further run is expected to change.
        """
        return max(self.most, int(UNSEEN_CHOICES_FACTOR * self.once / self.runs)) if self.runs else 0


@dataclass(frozen=True)
class Expected:
    """Hold one output of the reference, and how exactly a correct program returns it.

    `scale` has the shape of `value`: the error that rounding makes, as a root mean square; 0 for integers.
    """

    value: Array
    scale: Array
    precision: Precision
    choices: Choices = Choices()

    def tolerance(self) -> Array:
        """Return the maximum absolute error of each element, in float64; 0 for integers and booleans."""
        if not is_float(self.value):
            return np.zeros(self.value.shape)
        return ELEMENT_SCALES[self.precision] * self.scale + SMALLEST[self.precision]

    def resolution(self) -> Array:
        """Return the smallest relative error of each float that exceeds its tolerance: 0.01 is 1 % of the float.

        Floats for which it is infinite or unknown are left out. An output that is small by chance counts as if it had
        the median size of the outputs of like size.
        """
        if not is_float(self.value):
            return np.zeros(0)
        size = np.abs(self.value).ravel()
        typical_size = class_medians(size, size_classes(self.value))
        with np.errstate(all="ignore"):
            relative = self.tolerance().ravel() / np.maximum(size, typical_size)
        return np.asarray(relative[np.isfinite(relative)])


def size_classes(value: Array) -> Array:
    """Return an integer for each element of the flattened array: the half-decade of its absolute value.

    So the elements of a class are of like size. The smallest elements share a class, and so do all that are not finite.
    """
    size = np.abs(value.astype(np.float64)).ravel()
    finite = np.isfinite(size)
    nonzero = size[finite & (size > 0)]
    if not nonzero.size:
        return np.zeros(size.shape, np.int16)
    # The class of the smallest elements has at least `CLASS_ELEMENTS` of them, or all that are negligible.
    smallest_quantile = np.quantile(nonzero, min(1.0, CLASS_ELEMENTS / nonzero.size))
    smallest_size = max(float(smallest_quantile), NEGLIGIBLE_SIZE * float(np.median(nonzero)))
    half_decades = np.floor(CLASSES_PER_DECADE * np.log10(np.maximum(np.where(finite, size, 1.0), smallest_size)))
    return np.where(finite, half_decades, np.iinfo(np.int16).max).astype(np.int16)


def each_class(classes: Array) -> Iterator[Array]:
    """Yield an array of positions for each class: those of its elements. `classes` has the class of each element."""
    order = np.argsort(classes, kind="stable")
    starts_of_classes = np.flatnonzero(np.diff(classes[order])) + 1
    yield from np.split(order, starts_of_classes)


def class_medians(numbers: Array, classes: Array) -> Array:
    """Return for each element the median of the finite numbers of its class; 0 if the class has none."""
    medians = np.zeros(numbers.size, numbers.dtype)
    for positions in each_class(classes):
        finite = numbers[positions][np.isfinite(numbers[positions])]
        medians[positions] = np.median(finite) if finite.size else 0.0
    return medians


class Observed:
    """Collect the moves of one output over all runs, without keeping the runs.

    Sums are kept as roots of sums of squares, in float32 if the policy's type is not larger: a network has gigabytes
    of weights.
    """

    def __init__(self, value: Array, precision: Precision) -> None:
        """Start with the reference's output."""
        self.value = value
        self._precision = precision
        self._runs = 0
        self._runs_of_kind = 0
        # Of floats.
        self._dtype = np.float64 if precision == "float64" else np.float32
        self._scale = self._zeros()
        self._root = self._zeros()
        """Root of the sum of the squared moves of the current kind of runs."""
        self._largest = self._zeros()
        """Largest move of the current kind of runs."""
        self._leaps = 0
        """Number of leaps so far, over all outputs and kinds of runs; see `_without_leaps`."""
        self._farthest = 0.0
        """Largest move of a leap."""
        # Of integers, by run.
        self._positions: list[Array] = []
        self._values: list[Array] = []

    def _zeros(self) -> Array:
        """Return a 0 for each element of the flattened output if it has floats; an empty array if it has integers."""
        return np.zeros(self.value.size if is_float(self.value) else 0, self._dtype)

    def add(self, output: Array, ulps: float) -> None:
        """Add the output of a run that was disturbed by `ulps` units in the last place; a float's move is per unit."""
        self._runs += 1
        if not is_float(self.value):
            changed = np.flatnonzero(output.ravel() != self.value.ravel())
            self._positions.append(changed)
            self._values.append(output.ravel()[changed].astype(np.float64))
            return
        self._runs_of_kind += 1
        for part in _parts(self.value.size):
            moves = self._moves(output, part, ulps)
            self._root[part] = np.hypot(self._root[part], moves)
            self._largest[part] = np.maximum(self._largest[part], moves)

    def _moves(self, output: Array, part: slice, ulps: float) -> Array:
        """Return how far the elements `part` of a run's output are from the reference, divided by `ulps`.

        An element is 0 if either side is not finite.
        """
        difference = output.ravel()[part].astype(np.float64) - self.value.ravel()[part].astype(np.float64)
        moves = np.abs(np.nan_to_num(difference, nan=0.0, posinf=0.0, neginf=0.0)) / ulps
        return moves.astype(self._dtype)

    def end_kind(self) -> None:
        """End the runs of one kind: the scale becomes the largest of all kinds so far.

        The scale that one kind gives is the root mean square of an output's moves, and at least the median of outputs
        of like size.
        """
        if not self._runs_of_kind:
            return
        medians = class_medians(self._root / np.sqrt(self._runs_of_kind), size_classes(self.value))
        for part in _parts(self.value.size):
            scale = np.maximum(self._root[part].astype(np.float64) / np.sqrt(self._runs_of_kind), medians[part])
            if self._runs_of_kind - 1 >= MINIMUM_OTHER_RUNS:
                scale = self._without_leaps(scale, medians[part], part)
            self._scale[part] = np.maximum(self._scale[part], scale)
        self._root[...] = 0
        self._largest[...] = 0
        self._runs_of_kind = 0

    def _without_leaps(self, scale: Array, medians: Array, part: slice) -> Array:
        """Return the scales with smaller ones where a run of the current kind leapt, and count the leaps.

        A leap is a move by more than the tolerance that follows from the moves of the other runs: the run chose
        otherwise, such as the larger of two equal numbers. A correct program may return what either choice gives, but
        nothing far beyond both. So the scale becomes only as large as the tolerance needs to reach the leap.
        """
        root, largest = self._root[part].astype(np.float64), self._largest[part].astype(np.float64)
        others = self._runs_of_kind - 1
        rms_of_others = np.sqrt(np.maximum(np.square(root) - np.square(largest), 0.0) / others)
        own_rounding = OWN_ULPS[self._precision] * self._ulp(part)
        usual_scale = np.hypot(np.maximum(rms_of_others, medians), own_rounding)
        limit = ELEMENT_SCALES[self._precision]
        leaps = largest > limit * usual_scale
        self._leaps += int(leaps.sum())
        self._farthest = max(self._farthest, float(largest[leaps].max(initial=0.0)))
        return np.asarray(np.where(leaps, np.minimum(scale, usual_scale + largest / limit), scale))

    def add_terms(self, coherent: Array, ulps: float, terms_maximum: int) -> None:
        """Widen the moves of the current kind, whose inputs moved at random, for sums that round at every addition.

        A reference may add pairwise, and a correct program one term after the other. The error of the latter grows with
        the square root of the number n of terms. To find n: if all inputs grow together, a sum of n terms of one sign
        moves sqrt(n) times as far as if they move at random. `coherent` is the output of a run in which all inputs grew
        by `ulps` units in the last place; `terms_maximum` is the largest possible n, the number of all inputs.
        """
        root_of_runs = float(np.sqrt(self._runs_of_kind))
        for part in _parts(self.value.size):
            coherent_moves = self._moves(coherent, part, ulps)
            random_moves = np.maximum(self._root[part] / root_of_runs, SMALLEST[self._precision])
            root_of_terms = np.clip(coherent_moves / random_moves, 1.0, np.sqrt(terms_maximum))
            growth = root_of_runs * SUM_ULPS[self._precision] * root_of_terms * self._ulp(part)
            self._root[part] = np.hypot(self._root[part], growth)

    def _ulp(self, part: slice) -> Array:
        """Return one unit in the last place of each output, roughly: the spacing of numbers times its size."""
        size = np.abs(self.value.ravel()[part].astype(np.float64))
        return np.asarray(EPSILON[self._precision] * np.where(np.isfinite(size), size, 0.0))

    def expected(self, widening: float) -> Expected:
        """Return what a correct program may return, with scales widened by a factor."""
        value, precision = self.value, self._precision
        if not is_float(value):
            return Expected(value, np.zeros(value.shape, np.float32), precision, self._integer_choices())
        for part in _parts(value.size):
            self._scale[part] = np.hypot(widening * self._scale[part], OWN_ULPS[precision] * self._ulp(part))
        choices = Choices(
            runs=self._runs,
            once=self._leaps,
            share=self._leaps / max(1, self._runs * value.size),
            farthest=self._farthest,
        )
        return Expected(value, self._scale.reshape(value.shape), precision, choices)

    def _integer_choices(self) -> Choices:
        """Return where runs changed integers and booleans, how often, and to what."""
        size = self.value.size
        if not self._positions or not size:
            return Choices(runs=self._runs)
        counts = np.array([len(changed) for changed in self._positions])  # changed integers of each run
        positions, values = np.concatenate(self._positions), np.concatenate(self._values)
        share = float(np.median(counts)) / size
        _, runs_by_position = np.unique(positions, return_counts=True)
        distances = np.abs(values - self.value.ravel()[positions].astype(np.float64))
        if share > MAXIMUM_CHANCE:  # nothing is compared, so the alternatives take memory for nothing
            positions, values = positions[:0], values[:0]
        return Choices(
            runs=self._runs,
            once=int((runs_by_position == 1).sum()),
            share=share,
            most=int(counts.max()),
            farthest=float(distances.max(initial=0.0)),
            positions=positions,
            values=values,
        )
