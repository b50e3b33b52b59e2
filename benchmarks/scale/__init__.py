"""Provide the parts of `benchmarks/operator_scale.py`: client, simulated nodes, measurements of the operator."""
