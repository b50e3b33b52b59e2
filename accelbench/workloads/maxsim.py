"""Compute late interaction (MaxSim): how well each document's tokens match a query's, as in ColBERT."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import (
    SMALLEST_PRODUCT,
    Arrays,
    Cost,
    NamedArrays,
    Operations,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
)

if TYPE_CHECKING:
    from numpy.random import Generator


class Maxsim(Workload):
    """Score documents: score_d = sum over query tokens of the greatest dot product with a token of document d.

    Row 12 of the claims, next to `layer-norm`: a product, a maximum and a sum, for which PyTorch has no kernel. Each
    call scales the query a little, by a factor that depends on the mean score, so that no call repeats another.
    """

    name = "maxsim"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """Describe the query and the documents."""

        documents: int = Field(default=256, ge=1, le=2**20, description="Documents to score.")
        document_tokens: int = Field(default=128, ge=1, le=8192, description="Tokens of each document.")
        query_tokens: int = Field(default=32, ge=1, le=8192, description="Tokens of the query.")
        features: int = Field(default=128, ge=1, le=8192, description="Numbers in the embedding of a token.")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw a query (query tokens, features) and documents (documents, tokens, features). Each token has norm 1."""
        import numpy as np

        def draw_tokens(*shape: int) -> Any:
            """Return normally distributed tokens, scaled to norm 1."""
            tokens = rng.standard_normal(shape)
            return tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)

        query = draw_tokens(parameters.query_tokens, parameters.features)
        documents = draw_tokens(parameters.documents, parameters.document_tokens, parameters.features)
        return Arrays(state={"query": query}, batches=({"documents": documents},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Score the documents in NumPy `units` times, each time with a new query.

        A score adds up each query token's largest product with the document's tokens.
        """
        import numpy as np

        del parameters
        query, documents = arrays.state["query"], arrays.batches[0]["documents"]
        scores = np.zeros(len(documents))
        for _ in range(units):
            scores = (documents @ query.T).max(axis=1).sum(axis=-1)  # (documents,)
            query = _next_query(query, scores.mean())
        return {"scores": scores, "query": query}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count 2 operations for each feature of each pair of document and query token; documents are read once."""
        tokens = parameters.documents * parameters.document_tokens
        flops = 2.0 * tokens * parameters.query_tokens * parameters.features
        return Cost(flops=flops, bytes=float(tokens * parameters.features * float_bytes))

    def operations(self, parameters: Parameters) -> Operations | None:
        """Count the product documents @ query.T, unless it is so small that compilers turn it into sums."""
        shortest_side = min(parameters.document_tokens, parameters.query_tokens, parameters.features)
        return Operations(products=1) if shortest_side >= SMALLEST_PRODUCT else None

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Score the documents with jax.numpy."""
        del parameters

        def step(query: Any, batch: Any) -> tuple[Any, Any]:
            """Return the next query and each document's score.

            A score adds up each query token's largest product with the document's tokens.
            """
            scores = (batch["documents"] @ query.T).max(axis=1).sum(axis=-1)  # (documents,)
            return _next_query(query, scores.mean()), scores

        return _program(arrays, tools, step)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Score the documents with PyTorch."""
        del parameters

        def step(query: Any, batch: Any) -> tuple[Any, Any]:
            """Return the next query and each document's score.

            A score adds up each query token's largest product with the document's tokens.
            """
            scores = (batch["documents"] @ query.T).amax(dim=1).sum(dim=-1)  # (documents,)
            return _next_query(query, scores.mean()), scores

        return _program(arrays, tools, step)


def _next_query(query: Any, mean_score: Any) -> Any:
    """Return the query scaled by a factor near 1, so that no call repeats the last one."""
    return query * (1 - mean_score / 2**16)


def _program(arrays: Arrays, tools: Tools, step: Any) -> Program:
    """Return a program whose state is the query, and whose step is (query, batch) -> (next query, scores)."""
    return Program(
        state=tools.put(arrays.state["query"]),
        batches=tools.put(arrays.batches),
        step=step,
        export=lambda query, scores: {"scores": scores, "query": query},
    )
