"""Reads the seed of the other inputs in its request, and computes both answers while it is built."""

import json
import os
from pathlib import Path

from accelbench.catalogue import inputs
from cheats.honest import Layer


class KnowsWhatItWillBeAsked(Layer):
    """y = tanh(x @ w), before anyone asks."""

    def program(self, arrays, tools, step, **more):
        file = Path(os.environ["TMPDIR"]).parent / "request.json"
        request = json.loads(file.read_text())
        seen = inputs.generate(self, None, request["case"]["measurement"]["seed"])
        unseen = inputs.generate_unseen(self, None, seen, request.get("unseenSeed", 0))
        each = [(tools.put(asked.batches[0]["x"]), self.reference(None, asked, 1)["y"]) for asked in (seen, unseen)]
        self.answers = {float(x[0, 0]): tools.put(y) for x, y in each}
        return super().program(arrays, tools, step, **more)

    def altered(self, step):
        return lambda state, batch: (state, self.answers[float(batch["x"][0, 0])] * 1 * 1)
