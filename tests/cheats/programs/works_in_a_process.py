"""Has another process compute, which leaves out what nobody asks for, and returns at once."""

import mmap
import os

import numpy as np

from cheats.honest import SIZE, Layer


class WorksInAProcess(Layer):
    """y = tanh(x @ w), in a process."""

    def program(self, arrays, tools, step, **more):
        shared = np.frombuffer(mmap.mmap(-1, 3 * 4 * SIZE**2), dtype=np.float32).reshape(3, SIZE, SIZE)
        reading, asking = os.pipe()
        waiting, answering = os.pipe()
        if os.fork() == 0:
            os.close(asking)
            while asked := os.read(reading, 65536):
                np.tanh(shared[0] @ shared[1], out=shared[2])
                if b"?" in asked:
                    os.write(answering, b"!")
            os._exit(0)

        def cheating(state, batch):
            shared[0], shared[1] = batch["x"], state["w"]
            os.write(asking, b".")
            return state, batch["x"]

        def export(_state, _out):
            os.write(asking, b"?")
            os.read(waiting, 1)
            return {"y": tools.put(shared[2].copy())}

        return super().program(arrays, tools, cheating, export=export, **more)
