"""What the machine is: its identity, its memory, its control groups."""
