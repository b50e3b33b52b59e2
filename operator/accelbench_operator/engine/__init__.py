"""Read, watch and queue Kubernetes objects, elect a leader; know nothing about runs."""
