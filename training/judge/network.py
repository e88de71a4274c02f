"""The judge's network: an encoder of the BERT or MPNet family with three heads, started from published weights.

The encoder is written out here, so that training and export need nothing but PyTorch, and so that both families, which
differ in their position embeddings and in how a pair is laid out, are one class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from data import LABELS
from torch import nn
from weights import Arrays, read_arrays, read_judge


@dataclass(frozen=True)
class Shape:
    """What distinguishes the encoders: sizes, and whether positions are relative as well (MPNet)."""

    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    relative: bool

    @property
    def pad(self) -> int:
        return 1 if self.relative else 0

    @property
    def first_position(self) -> int:
        return 2 if self.relative else 0


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.q, self.k, self.v, self.o = (nn.Linear(shape.width, shape.width) for _ in range(4))
        self.up, self.down = nn.Linear(shape.width, shape.inner), nn.Linear(shape.inner, shape.width)
        self.norm_1, self.norm_2 = nn.LayerNorm(shape.width, 1e-12), nn.LayerNorm(shape.width, 1e-12)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        size = width // self.heads

        def split(y: torch.Tensor) -> torch.Tensor:
            return y.view(batch, length, self.heads, size).transpose(1, 2)

        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        if torch.onnx.is_in_onnx_export():
            attended = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(size) + bias, -1) @ v
        else:
            attended = F.scaled_dot_product_attention(q, k, v, bias.to(q.dtype))
        x = self.norm_1(x + self.dropout(self.o(attended.transpose(1, 2).reshape(batch, length, width))))
        return self.norm_2(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Encoder(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.places = nn.Embedding(shape.positions, shape.width)
        self.types = nn.Embedding(2, shape.width)
        self.norm = nn.LayerNorm(shape.width, 1e-12)
        self.relative = nn.Embedding(32, shape.heads) if shape.relative else None
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.dropout = nn.Dropout(0.1)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.words(ids) + self.places(places + self.shape.first_position) + self.types(types)
        x = self.dropout(self.norm(x))
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -1e4
        if self.relative is not None:
            bias = bias + self.relative(buckets(places)).permute(2, 0, 1)[None]
        for layer in self.layers:
            x = layer(x, bias)
        return x


def buckets(places: torch.Tensor) -> torch.Tensor:
    """The bucket of each pair of positions, as T5 and MPNet number them: exact to 7, logarithmic up to 128."""
    distance = places[:, None] - places[None, :]
    behind = (distance < 0).to(torch.long) * 16
    distance = distance.abs()
    far = 8 + (torch.log(distance.clamp(min=1).float() / 8) / math.log(128 / 8) * 8).to(torch.long)
    return behind + torch.where(distance < 8, distance, far.clamp(max=15))


class Network(nn.Module):
    """The encoder, and one small head for each question: CLS and mean pooling, one hidden layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.encoder = Encoder(shape)
        self.relation = head(shape.width, len(LABELS))
        self.useful = head(shape.width, 1)
        self.injection = head(shape.width, 1)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        states = self.encoder(ids, mask, types)
        weights = mask.unsqueeze(-1).to(states.dtype)
        pooled = torch.cat([states[:, 0], (states * weights).sum(1) / weights.sum(1)], -1)
        return self.relation(pooled), self.useful(pooled).squeeze(-1), self.injection(pooled).squeeze(-1)


def head(width: int, outputs: int) -> nn.Sequential:
    hidden = min(width, 384)
    return nn.Sequential(nn.Dropout(0.1), nn.Linear(2 * width, hidden), nn.GELU(), nn.Linear(hidden, outputs))


def started_from(path: Path, keep: list[int] | None = None) -> Network:
    """A network whose encoder has the weights of a published model, of which a smaller one keeps the layers `keep`."""
    arrays = read_arrays(path)
    relative = "encoder.relative_attention_bias.weight" in arrays
    count = 1 + max(int(name.split(".")[2]) for name in arrays if name.startswith("encoder.layer."))
    words, places = (arrays[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position"))
    inner = arrays["encoder.layer.0.intermediate.dense.weight"].shape[0]
    shape = Shape(words.shape[1], count, 12, inner, *words.shape[:1], places.shape[0], relative)
    chosen = list(range(count)) if keep is None else keep
    network = Network(replace(shape, layers=len(chosen)))
    state = {f"encoder.{name}": torch.tensor(array) for name, array in renamed(arrays, chosen, relative).items()}
    missing, extra = network.load_state_dict(state, strict=False)
    missing = [name for name in missing if name.startswith("encoder.") and name != "encoder.types.weight"]
    if missing or extra:
        raise SystemExit(f"{path} lacks {missing} and has {extra}; is it a BERT or MPNet encoder?")
    if relative:
        nn.init.zeros_(network.encoder.types.weight)
    return network


def gone_on_from(path: Path) -> Network:
    """A network with the weights of an exported judge, or those that training saved."""
    if path.suffix == ".pt":
        saved = torch.load(path, weights_only=False)
        network = Network(saved["shape"])
        network.load_state_dict(saved["state"])
        return network
    arrays = read_judge(path)
    words, places = arrays["encoder.words.weight"], arrays["encoder.places.weight"]
    layers = sum(name.endswith(".q.weight") for name in arrays)
    inner = arrays["encoder.layers.0.up.weight"].shape[0]
    relative = "encoder.relative.weight" in arrays
    network = Network(Shape(words.shape[1], layers, 12, inner, words.shape[0], places.shape[0], relative))
    network.load_state_dict({name: torch.tensor(array) for name, array in arrays.items()})
    return network


def renamed(arrays: Arrays, chosen: list[int], relative: bool) -> Arrays:
    """The arrays of a published model by the names used here."""
    names = {"word_embeddings": "words", "position_embeddings": "places", "token_type_embeddings": "types"}
    found = {
        f"{new}.weight": arrays[f"embeddings.{old}.weight"]
        for old, new in names.items()
        if f"embeddings.{old}.weight" in arrays
    }
    attention = "attention.attn.{}" if relative else "attention.self.{}"
    parts = {attention.format(n if relative else long): n for n, long in (("q", "query"), ("k", "key"), ("v", "value"))}
    parts |= {"attention.attn.o" if relative else "attention.output.dense": "o"}
    parts |= {"attention.LayerNorm" if relative else "attention.output.LayerNorm": "norm_1"}
    parts |= {"intermediate.dense": "up", "output.dense": "down", "output.LayerNorm": "norm_2"}
    for kind in ("weight", "bias"):
        found[f"norm.{kind}"] = arrays[f"embeddings.LayerNorm.{kind}"]
        for place, layer in enumerate(chosen):
            for old, new in parts.items():
                found[f"layers.{place}.{new}.{kind}"] = arrays[f"encoder.layer.{layer}.{old}.{kind}"]
    if relative:
        found["relative.weight"] = arrays["encoder.relative_attention_bias.weight"]
    return found
