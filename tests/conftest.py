"""What every test may ask for: a real cluster (`control_plane`, `node_cluster`, `cluster`, `namespace`)."""

from hypothesis import settings

pytest_plugins = ["cluster.fixtures"]

# A test that is slow for want of a processor, or because its first example imports scipy, is no failure.
settings.register_profile("accelbench", deadline=None)
settings.load_profile("accelbench")
