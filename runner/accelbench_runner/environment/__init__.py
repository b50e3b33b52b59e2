"""The process that examines an environment before the first round."""
