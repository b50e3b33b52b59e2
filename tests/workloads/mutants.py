"""Workloads that are wrong in one place each, the way people get them wrong; right in everything else."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from accelbench.workload import Arrays, Program, Tools, variant
from accelbench.workloads.activation_checkpointing import ActivationCheckpointing
from accelbench.workloads.checkpoint import Checkpoint
from accelbench.workloads.cifar_cnn import CifarCnn
from accelbench.workloads.dispatch_overhead import DispatchOverhead
from accelbench.workloads.elementwise_fusion import ElementwiseFusion
from accelbench.workloads.export import Export
from accelbench.workloads.freeze_layers import FreezeLayers
from accelbench.workloads.inference_latency import InferenceLatency
from accelbench.workloads.inplace_update import InplaceUpdate
from accelbench.workloads.keras_mlp import KerasMlp
from accelbench.workloads.layer_norm import LayerNorm
from accelbench.workloads.linear_regression import LinearRegression
from accelbench.workloads.loop_unrolling import LoopUnrolling
from accelbench.workloads.matmul_chain import MatmulChain
from accelbench.workloads.maxsim import Maxsim
from accelbench.workloads.mixed_precision import MixedPrecision
from accelbench.workloads.mlp import Mlp
from accelbench.workloads.optimizer_step import OptimizerStep
from accelbench.workloads.quantized_linear import QuantizedLinear
from accelbench.workloads.resnet import Resnet
from accelbench.workloads.text_generation import TextGeneration
from accelbench.workloads.transformer_lm import TransformerLm
from accelbench.workloads.variable_length import VariableLength
from accelbench.workloads.vit import Vit
from accelbench.workloads.xor import Xor


class WrongAxis(MatmulChain):
    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return replace(super().jax(parameters, arrays, tools), step=lambda x, batch: (x @ batch["w"].T, None))


class WrongOrder(MatmulChain):
    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return replace(super().jax(parameters, arrays, tools), step=lambda x, batch: (batch["w"] @ x, None))


class WrongWeights(Xor):
    """Takes weights for (in, out) that are (out, in)."""

    @variant("jax/jit-step")
    def jit_step(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        transposed = {**arrays.state, "weights1": arrays.state["weights1"].T}
        return super().jit_step(parameters, replace(arrays, state=transposed), tools)


class WrongReduction(Xor):
    """Half the loss, as if the mean were over two outputs."""

    @variant("jax/jit-step")
    def jit_step(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        halved = parameters.model_copy(update={"learning_rate": parameters.learning_rate / 2})
        return super().jit_step(halved, arrays, tools)


class WrongSamples(Xor):
    """The last sample is left out of every epoch, and the first comes twice."""

    @variant("jax/jit-step")
    def jit_step(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        batch = {name: array[[0, 1, 2, 0]] for name, array in arrays.batches[0].items()}
        return super().jit_step(parameters, replace(arrays, batches=(batch,)), tools)


class WrongFunction(ElementwiseFusion):
    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax.numpy as jnp

        return replace(super().jax(parameters, arrays, tools), step=lambda x, _: (2 * jnp.sin(x), None))


class WrongCoefficient(DispatchOverhead):
    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return replace(super().jax(parameters, arrays, tools), step=lambda x, _: (x**2 + 2 * x, None))


class AlwaysTheFirst(DispatchOverhead):
    """Every evaluation takes the same x: what a benchmark computes that throws results away."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jax(parameters, arrays, tools)
        return replace(program, step=lambda _, first: program.step(first, {}), batches=(program.state,))


class WrongOrderOfUnits(Mlp):
    """Hidden units of one layer in the order of another: weights copied between libraries that differ in it."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        reversed_units = {**arrays.state, "weights2": arrays.state["weights2"][::-1].copy()}
        return super().pytorch(parameters, replace(arrays, state=reversed_units), tools)


class LostAxis(Mlp):
    """Targets without their axis: every prediction against every target, and no error."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        batch = {**arrays.batches[0], "targets": arrays.batches[0]["targets"][:, 0]}
        return super().jax(parameters, replace(arrays, batches=(batch,)), tools)


class SummedLoss(Mlp):
    """Gradients of a mean over examples alone: `outputs` times as large."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        rate = parameters.learning_rate * parameters.outputs
        return super().pytorch(parameters.model_copy(update={"learning_rate": rate}), arrays, tools)


class OtherWindow(Mlp):
    """Predictions put before the inputs that they follow."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax.numpy as jnp

        program = super().jax(parameters, arrays, tools)

        def step(inputs: Any, network: Any) -> tuple[Any, None]:
            moved_on, _ = program.step(inputs, network)
            return jnp.roll(moved_on, parameters.outputs, axis=1), None

        return replace(program, step=step)


class SumOfSquares(LinearRegression):
    """Half the loss, as textbooks write it: half the gradient."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return super().jax(parameters.model_copy(update={"rate": parameters.rate / 2}), arrays, tools)


class LostColumn(LinearRegression):
    """Targets with an axis: every prediction against every target, and no error."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        batch = {**arrays.batches[0], "y": arrays.batches[0]["y"][:, None]}
        return super().pytorch(parameters, replace(arrays, batches=(batch,)), tools)


class SampleVariance(LayerNorm):
    """Bessel's correction, which torch.var makes unless it is told not to."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import torch

        def step(x: Any, batch: Any) -> tuple[Any, None]:
            deviation = x - x.mean(dim=-1, keepdim=True)
            return deviation * torch.rsqrt(x.var(dim=-1, keepdim=True) + 1e-5) * batch["gain"] + batch["bias"], None

        return replace(super().pytorch(parameters, arrays, tools), step=step)


class OverRows(LayerNorm):
    """Batch normalisation."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax.numpy as jnp

        def step(x: Any, batch: Any) -> tuple[Any, None]:
            return (x - x.mean(axis=0)) / jnp.sqrt(x.var(axis=0) + 1e-5) * batch["gain"] + batch["bias"], None

        return replace(super().jax(parameters, arrays, tools), step=step)


class OverTheQuery(Maxsim):
    """The greatest over the query's tokens, the sum over the document's."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        def step(query: Any, batch: Any) -> tuple[Any, Any]:
            scores = (batch["documents"] @ query.T).max(axis=2).sum(axis=-1)
            return query, scores

        return replace(super().jax(parameters, arrays, tools), step=step)


class ExclusiveSums(LoopUnrolling):
    """Each sum without its own number, as prefix sums are often meant."""

    @variant("jax/jit-cumsum")
    def jit_cumsum(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jit_cumsum(parameters, arrays, tools)

        def step(carry: Any, batch: Any) -> tuple[Any, Any]:
            carry, sums = program.step(carry, batch)
            return carry, sums - batch["x"]

        return replace(program, step=step)


class LostSine(LoopUnrolling):
    """The last sine is left out."""

    @variant("jax/jit-fori")
    def jit_fori(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        fewer = parameters.model_copy(update={"length": parameters.length - 1})
        return super().jit_fori(fewer, arrays, tools)


class TheOldArray(InplaceUpdate):
    """Changes a copy, and returns what it was given."""

    @variant("pytorch/in-place")
    def in_place(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().in_place(parameters, arrays, tools)
        return replace(program, step=lambda x, batch: (x, program.step(x.clone(), batch)[1]))


class NoBiasCorrection(OptimizerStep):
    """RMSProp with momentum, whose first steps are of another size."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jax(parameters, arrays, tools)

        def step(state: Any, gradients: Any) -> tuple[Any, Any]:
            (_, moments), out = program.step(state, gradients)
            m, v = moments[0].mu, moments[0].nu
            rate = parameters.learning_rate
            return ({name: p - rate * m[name] / (v[name] ** 0.5 + 1e-8) for name, p in state[0].items()}, moments), out

        return replace(program, step=step)


class OtherEpoch(OptimizerStep):
    """The gradients of other parameters."""

    @variant("pytorch/fused")
    def fused(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        names = list(arrays.state)
        turned = dict(zip(names, [arrays.batches[0][name] for name in reversed(names)], strict=True))
        return super().fused(parameters, replace(arrays, batches=(turned,)), tools)


class ByPlace(CifarCnn):
    """The linear layer's weights as they are: its inputs come channel by channel."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        side, weights = parameters.size // 4, arrays.state["weights3"]
        by_place = weights.reshape(2 * parameters.channels, side, side, -1).transpose(1, 2, 0, 3)
        mixed_up = {**arrays.state, "weights3": by_place.reshape(weights.shape)}
        return super().pytorch(parameters, replace(arrays, state=mixed_up), tools)


class AveragePool(CifarCnn):
    """The mean of four in place of the greatest."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        from flax import nnx

        program = super().jax(parameters, arrays, tools)
        with patch.object(nnx, "max_pool", nnx.avg_pool):
            averaging = super().jax(parameters, arrays, tools)
        return replace(program, step=averaging.step, state=averaging.state)


class NoMomentum(Resnet):
    """Plain gradient descent: the first step is right."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        from unittest.mock import patch

        from accelbench.workloads import _resnet

        with patch.object(_resnet, "MOMENTUM", 0.0):
            return super().pytorch(parameters, arrays, tools)


class OneMoreFrozen(FreezeLayers):
    @variant("jax/jit-trained-only")
    def jit_trained_only(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return super().jit_trained_only(parameters.model_copy(update={"frozen": parameters.frozen + 1}), arrays, tools)


class NothingFrozen(FreezeLayers):
    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return super().pytorch(parameters.model_copy(update={"frozen": 0}), arrays, tools)


class LostSegment(ActivationCheckpointing):
    """The last segment is forgotten where the layers do not divide evenly."""

    @variant("jax/jit-checkpoint")
    def jit_checkpoint(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        fewer = parameters.model_copy(update={"layers": parameters.layers - parameters.segment})
        return super().jit_checkpoint(fewer, arrays, tools)


class LostRest(ActivationCheckpointing):
    """What is less than a segment is neither passed through nor trained."""

    @variant("jax/jit-checkpoint-scanned")
    def jit_checkpoint_scanned(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax

        program = super().jit_checkpoint_scanned(parameters, arrays, tools)

        def step(layers: Any, batch: Any) -> tuple[Any, Any]:
            stacked, rest = layers
            (stacked, _), loss = program.step((stacked, []), batch)
            return (stacked, rest), loss

        return replace(program, step=jax.jit(step), donate=False)


class HeadsMixedUp(Vit):
    """Half as many heads, twice as wide: the shapes are the same."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return super().pytorch(parameters.model_copy(update={"heads": parameters.heads // 2}), arrays, tools)


class PatchesTransposed(Vit):
    """Images with columns before rows."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jax(parameters, arrays, tools)

        def step(images: Any, weights: Any) -> tuple[Any, Any]:
            images, logits = program.step(images.swapaxes(1, 2), weights)
            return images.swapaxes(1, 2), logits

        return replace(program, step=step)


class SummedOverImages(Vit):
    """The loss is summed, not averaged: twice the gradient of two images."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        rate = parameters.batch * parameters.learning_rate
        return super().pytorch(parameters.model_copy(update={"learning_rate": rate}), arrays, tools)


class FrozenPositions(Vit):
    """Positions are not trained."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jax(parameters, arrays, tools)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            (weights, optimizer_state), loss = program.step(state, batch)
            outside = {**weights[0], "positions": state[0][0]["positions"]}
            return ([outside, *weights[1:]], optimizer_state), loss

        return replace(program, step=step)


class NotCausal(TransformerLm):
    """Every word knows the next one."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        from torch.nn import functional

        program = super().pytorch(parameters, arrays, tools)
        attention = functional.scaled_dot_product_attention

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            with patch.object(functional, attention.__name__, lambda q, k, v, **_: attention(q, k, v)):
                return program.step(state, batch)

        return replace(program, step=step)


class FewerHeads(TransformerLm):
    """Half as many heads, twice as wide: the shapes are the same."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return super().jax(parameters.model_copy(update={"heads": parameters.heads // 2}), arrays, tools)


class ItsOwnWord(TransformerLm):
    """Each word is to be predicted from itself."""

    @variant("jax/jit-scanned")
    def jit_scanned(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        batch = {**arrays.batches[0], "targets": arrays.batches[0]["tokens"]}
        return super().jit_scanned(parameters, replace(arrays, batches=(batch,)), tools)


class OnePlaceLater(TextGeneration):
    """Keys and values are written one place after their token's, over which the mask ends."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        from accelbench.workloads import _text_generation_jax as in_jax

        program, write = super().jax(parameters, arrays, tools), in_jax.write

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            with patch.object(in_jax, "write", write_later):
                return program.step(state, batch)

        def write_later(buffer: Any, new: Any, start: Any, *, axis: int) -> Any:
            is_cache = buffer.ndim > 2  # scores, (batch, tokens), are written where they belong
            return write(buffer, new, start + 1 if is_cache else start, axis=axis)

        return replace(program, step=step)


class UnwrittenAttendedTo(TextGeneration):
    """Every token attends to the whole buffer, of which the end is an earlier text's."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        from torch.nn import functional

        program = super().pytorch(parameters, arrays, tools)
        attention = functional.scaled_dot_product_attention

        def without_mask(q: Any, k: Any, v: Any, *, is_causal: bool = False, **_: Any) -> Any:
            return attention(q, k, v, is_causal=is_causal)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            with patch.object(functional, attention.__name__, without_mask):
                return program.step(state, batch)

        return replace(program, step=step)


class PaddingAttendedTo(VariableLength):
    """The mask is forgotten."""

    @variant("jax/jit-padded")
    def jit_padded(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jit_padded(parameters, arrays, tools)
        return replace(program, batches=[(text, valid | True, blocks) for text, valid, blocks in program.batches])


class UnscaledLoss(MixedPrecision):
    """Gradients are not divided by the loss's scale."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        rate = min(10.0, parameters.learning_rate * 1024)
        return super().pytorch(parameters.model_copy(update={"learning_rate": rate}), arrays, tools)


class MomentsLost(Checkpoint):
    """The optimiser's moments start anew."""

    @variant("pytorch/save")
    def save(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().save(parameters, arrays, tools)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            loaded, out = program.step(state, batch)
            return {**loaded, "m": 0 * loaded["m"]}, out

        return replace(program, step=step)


class LayerLost(Export):
    """Exported without its last layer."""

    @variant("jax/export")
    def exported_by_jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        fewer = parameters.model_copy(update={"layers": parameters.layers - 1})
        return super().exported_by_jax(fewer, arrays, tools)


class OnePlaceAlone(InferenceLatency):
    """Writes the keys and values of every token over those of the last one."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        right = super().jax(parameters, arrays, tools)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            after, logits = right.step(state, batch)
            return {**after, "place": state["place"]}, logits

        return replace(right, step=step)


class KernelsMirrored(InferenceLatency):
    """Convolves as mathematicians do, with the kernels turned round."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        batch = arrays.batches[0]
        mirrored = {name: batch[name][::-1, ::-1].copy() for name in ("kernel1", "kernel2")}
        return super().pytorch(parameters, replace(arrays, batches=({**batch, **mirrored},)), tools)


class FourBits(QuantizedLinear):
    """Weights in int4, whose error is that of 15 levels."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        scale = abs(arrays.batches[0]["w"]).max(0) / 7
        rounded = (arrays.batches[0]["w"] / scale).round() * scale
        return super().jax(parameters, replace(arrays, batches=({"w": rounded},)), tools)


class AlwaysTheFirstBatch(KerasMlp):
    """An iterator over mini-batches that never moves on."""

    @variant("jax/jit")
    def jit(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return super().jit(parameters, replace(arrays, batches=arrays.batches[:1]), tools)
