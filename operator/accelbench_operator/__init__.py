"""Turn BenchmarkRuns into Jobs and Jobs into BenchmarkResults; keep all state in the cluster."""
