"""Export results, live progress and the health of the operator to Prometheus."""
