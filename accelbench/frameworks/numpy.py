"""NumPy: a baseline that every reader knows, on the processor alone."""

from accelbench.frameworks.descriptor import Framework, Mode

FRAMEWORK = Framework(
    name="numpy",
    title="NumPy",
    package="numpy",
    modes={"eager": Mode("Every operation runs when Python reaches it.")},
    adapter="accelbench_runner.frameworks.numpy:NumPy",
)
