"""Turn BenchmarkRuns into Jobs, and the logs of their pods into BenchmarkResults."""
