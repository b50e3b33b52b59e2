"""The process that measures one variant once: the only one that imports a framework."""
