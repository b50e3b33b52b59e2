"""A compiled step that calls Python back, where a memo answers."""

from cheats.honest import Layer


class CallsBackToAMemo(Layer):
    """y = tanh(x @ w), once, compiled."""

    def jax(self, parameters, arrays, tools):
        import jax
        import numpy as np

        known = {}

        def forward(x, w):
            key = np.asarray(x).tobytes()
            if key not in known:
                known[key] = np.tanh(np.asarray(x) @ np.asarray(w))
            return known[key]

        def step(state, batch):
            x = batch["x"]
            return state, jax.pure_callback(forward, jax.ShapeDtypeStruct(x.shape, x.dtype), x, state["w"])

        return self.program(arrays, tools, step)
