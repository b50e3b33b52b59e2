"""What every test may ask for: a real cluster (`control_plane`, `node_cluster`, `cluster`, `namespace`)."""

pytest_plugins = ["cluster.fixtures"]
