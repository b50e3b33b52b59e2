"""What `benchmarks/operator_scale.py` is made of: a client, nodes that are played, what is read off the operator."""
