"""Turns BenchmarkRuns into Jobs and Jobs into BenchmarkResults; holds no state that the cluster does not hold."""
