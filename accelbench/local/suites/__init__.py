"""Read suites of manifests, and keep their results on this machine."""
