"""Run cases on this machine, and read their results from disk. The command line, the plugin and notebooks use it."""
