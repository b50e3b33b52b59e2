"""Sets its own number of threads in its step."""

from cheats.honest import Relaxation


class ChangesTheThreads(Relaxation):
    """x <- tanh(x @ w), by one thread more."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        threads = torch.get_num_threads()

        def step(state, batch):
            torch.set_num_threads(threads + 1)
            x = torch.tanh(state["x"] @ batch["w"])
            return {"x": x}, None

        return self.program(arrays, tools, step)
