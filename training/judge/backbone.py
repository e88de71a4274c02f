"""The judge's network: a small BERT encoder with a head over the labels, started from published embedding weights."""

from __future__ import annotations

from pathlib import Path

import onnx
import torch
from data import LABELS
from onnx import numpy_helper
from tokenizers import Tokenizer
from torch import nn
from transformers import BertConfig, BertModel


class Judge(nn.Module):
    """Encodes a pair as one sequence; CLS and mean pooling feed one hidden layer and the logits of the labels."""

    def __init__(self, encoder: BertModel) -> None:
        super().__init__()
        self.encoder = encoder
        width = encoder.config.hidden_size
        self.head = nn.Sequential(
            nn.Dropout(0.1), nn.Linear(2 * width, width), nn.GELU(), nn.Linear(width, len(LABELS))
        )

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        states = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        weights = attention_mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1)
        return self.head(torch.cat([states[:, 0], mean], dim=-1))


def encoder_from_onnx(path: Path) -> BertModel:
    """A BERT encoder with the weights of an exported embedding model, such as bge-small-en-v1.5 or e5-small-v2.

    Exports name biases and norms as the model does; the matrices of linear layers are anonymous and transposed, and
    are recognised by the node that multiplies with them, just before the bias of their layer is added.
    """
    graph = onnx.load(str(path)).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    matrix_of = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul"}
    state = {name.removeprefix("bert."): torch.tensor(array) for name, array in arrays.items() if "." in name}
    for node in graph.node:
        if node.op_type != "Add":
            continue
        bias, product = (node.input[0], node.input[1]) if node.input[0] in arrays else (node.input[1], node.input[0])
        if bias.endswith(".bias") and matrix_of.get(product) in arrays:
            name = bias.removeprefix("bert.").removesuffix("bias") + "weight"
            state[name] = torch.tensor(arrays[matrix_of[product]].T.copy())
    layers = 1 + max(int(name.split(".")[2]) for name in state if name.startswith("encoder.layer."))
    width = state["embeddings.word_embeddings.weight"].shape[1]
    config = BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=state["encoder.layer.0.intermediate.dense.weight"].shape[0],
    )
    encoder = BertModel(config, add_pooling_layer=False)
    missing, _ = encoder.load_state_dict(state, strict=False)
    if missing:
        raise SystemExit(f"{path} lacks the weights {missing}; is it the export of a BERT encoder?")
    return encoder


def encode(tokenizer: Tokenizer, pairs: list[tuple[str, str]], device: str) -> dict[str, torch.Tensor]:
    """A batch of pairs as the network takes it."""
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(pairs)
    return {
        "input_ids": torch.tensor([e.ids for e in encoded], device=device),
        "attention_mask": torch.tensor([e.attention_mask for e in encoded], device=device),
        "token_type_ids": torch.tensor([e.type_ids for e in encoded], device=device),
    }
