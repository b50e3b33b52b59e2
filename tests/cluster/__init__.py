"""A real Kubernetes for the tests: a control plane, and a node that runs pods, without a container engine.

Start with `fixtures` in a test, with `python -m cluster up` by hand.
"""
