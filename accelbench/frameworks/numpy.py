"""Describe NumPy: a well-known baseline, on the processor only."""

from accelbench.frameworks.descriptor import Framework, Mode

FRAMEWORK = Framework(
    name="numpy",
    title="NumPy",
    package="numpy",
    modes={"eager": Mode("Every operation runs when Python reaches it.")},
    adapter="accelbench_runner.frameworks.numpy:NumPy",
)
