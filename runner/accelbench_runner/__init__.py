"""One case in, one result out: starts launches in rounds, collects blocks, stops when the verdict is good enough."""
