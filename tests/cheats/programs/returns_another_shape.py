"""Its answer has another shape than the reference's."""

from cheats.honest import Layer


class ReturnsAnotherShape(Layer):
    """y = tanh(x @ w), in one row."""

    def altered(self, step):
        def reshaping(state, batch):
            state, y = step(state, batch)
            return state, y.reshape(-1)

        return reshaping
