"""A framework of somebody else's: plain Python lists. accelbench finds it by an entry point."""

from accelbench.frameworks import Framework, Mode

FRAMEWORK = Framework(
    name="lists",
    title="Python lists",
    package="array",
    modes={"eager": Mode()},
    adapter="third_framework.adapter:Lists",
    caches={"LISTS_CACHE": "lists"},
)
