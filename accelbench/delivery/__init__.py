"""How a result leaves the pod, and what is left of it when the pod is killed."""
