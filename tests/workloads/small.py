"""Every workload that is timed, small enough to be computed in a moment."""

from typing import Any

VIT = (("layers", 2), ("width", 16), ("heads", 2), ("image", 8), ("patch", 4), ("classes", 10), ("batch", 2))
LM = (("layers", 2), ("width", 16), ("heads", 2), ("vocabulary", 24), ("sequence", 8), ("batch", 4))
SMALL: dict[str, list[tuple[tuple[str, Any], ...]]] = {
    "matmul-chain": [(("size", 24), ("length", 5)), (("size", 8), ("length", 12), ("scaling", "none"))],
    "elementwise-fusion": [(("size", 1000), ("form", "sum")), (("size", 1000), ("form", "chain"))],
    "xor": [(("epochs", 20),), (("epochs", 20), ("losses", "read"), ("samples", "converted"))],
    "dispatch-overhead": [(("size", 1),), (("size", 1000),)],
    "mlp": [
        (("learning_rate", 0.1),),
        (("outputs", 3), ("work", "predict")),
    ],
    "linear-regression": [(("samples", 20), ("steps", 10))],
    "layer-norm": [(("rows", 6), ("features", 5))],
    "maxsim": [(("documents", 3), ("document_tokens", 10), ("query_tokens", 8), ("features", 16))],
    "loop-unrolling": [(("length", 12),), (("length", 12), ("body", "sine"))],
    "inplace-update": [
        (("size", 100),),
        (("size", 2560), ("updates", 3), ("update", "sine")),
        (("size", 2560), ("updates", 3), ("update", "row")),
    ],
    "optimizer-step": [(("tensors", 2), ("size", 50), ("learning_rate", 0.1))],
    "cifar-cnn": [(("batch", 8), ("channels", 4), ("size", 8), ("learning_rate", 0.1))],
    "resnet": [(("depth", 14), ("width", 4), ("image", 32), ("classes", 10), ("batch", 8), ("learning_rate", 0.001))],
    "freeze-layers": [(("layers", 4), ("frozen", 2), ("width", 16), ("batch", 8))],
    "activation-checkpointing": [(("layers", 5), ("segment", 2), ("width", 16), ("batch", 8))],
    "vit": [VIT, (*VIT, ("work", "train"), ("learning_rate", 0.1))],
    "transformer-lm": [
        (*LM, ("learning_rate", 0.01)),
        (*LM, ("learning_rate", 0.01), ("embedding", "tied"), ("activations", "recomputed")),
    ],
    "text-generation": [
        (
            *(("layers", 2), ("width", 16), ("heads", 2), ("vocabulary", 24), ("batch", 2)),
            *(("prompt", 5), ("tokens", 4)),
        )
    ],
    "variable-length": [(("passes", 1), ("shortening", 8), ("batch", 2), ("width", 16))],
    "checkpoint": [(("size", 100),)],
    "heat-equation": [(("size", 16), ("steps", 5))],
    "lennard-jones": [(("cells", 3), ("steps", 5))],
    "cartpole-rollout": [(("environments", 32), ("steps", 15))],
    "quantized-linear": [
        (("inputs", 32), ("outputs", 16), ("batch", 8)),
        (("inputs", 32), ("outputs", 16), ("batch", 8), ("scheme", "int8-both")),
    ],
    "inference-latency": [
        (("size", 8), ("channels", 4)),
        (("model", "decoder"), ("layers", 2), ("width", 16), ("heads", 2), ("vocabulary", 24), ("context", 8)),
    ],
    "export": [(("layers", 2), ("width", 16), ("batch", 8))],
    "keras-mlp": [(("inputs", 10), ("hidden", 16), ("batch", 8), ("steps", 4), ("learning_rate", 0.1))],
    "photometric-stereo": [(("size", 8), ("lights", 8))],
    "neural-ode": [
        (("batch", 3), ("steps", 8), ("time", 2.0)),
        (("work", "train"), ("batch", 3), ("steps", 4), ("time", 1.0), ("hidden", 8)),
    ],
    "per-example-gradients": [(("inputs", 5), ("width", 8), ("batch", 4))],
    "vmap": [(("rows", 8),), (("rows", 8), ("function", "square"))],
    "hessian": [(("size", 6),), (("size", 6), ("of", "product"))],
    "joint-gradient": [(("layers", 3), ("width", 8), ("batch", 8))],
    "composed-gradients": [
        (("problem", problem), ("examples", 6), ("width", 4))
        for problem in ("meta-learning", "fisher", "variational", "straight-through", "batched-jacobian")
    ],
    "dlpack": [(("size", 100),)],
    "mixed-precision": [(("layers", 3), ("width", 16), ("batch", 8))],
}
