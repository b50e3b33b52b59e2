"""Its step does nothing; its export computes what is right."""

from dataclasses import replace

from cheats.honest import Layer


class ExportsTheAnswer(Layer):
    """y = tanh(x @ w), by its reference."""

    def jax(self, parameters, arrays, tools):
        return self.answering(super().jax(parameters, arrays, tools), parameters, arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        return self.answering(super().pytorch(parameters, arrays, tools), parameters, arrays, tools)

    def answering(self, honest, parameters, arrays, tools):
        """Whatever the step returned."""
        return replace(
            honest,
            step=lambda state, _batch: (state, None),
            export=lambda _state, _out: tools.put(self.reference(parameters, arrays, 1)),
        )
