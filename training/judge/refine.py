"""Go on training an exported judge for one pass over few items: what was written since, and a sample of the rest.

    python refine.py --judge ../../src/alma/judge/data/judge.onnx --tokenizer mpnet.json --since w9 --out refined.pt

The lower half of the encoder is kept as it is, so that a processor without a GPU does this in a quarter of an hour.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import torch
from batches import Layout
from data import Cluster, Pair, pairs_across, pairs_within, parse_cluster, read_clusters
from items import Items, label_weights, read_items
from network import gone_on_from
from train import HERE, Trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--since", required=True, help="files of clusters that begin so are new")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=6e-5)
    parser.add_argument("--smoothing", type=float, default=0.05)
    parser.add_argument("--freeze", type=int, default=3)
    parser.add_argument("--old", type=int, default=3_000)
    parser.add_argument("--rows", type=int, default=700)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.teachers = []
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    rng = random.Random(args.seed)
    items = read_items(HERE / "clusters", HERE / "heads", None, 0.0, smoke=False)
    new = [c for p in sorted((HERE / "clusters").glob(f"{args.since}*.txt")) for c in in_file(p)]
    items = chosen(items, new, read_clusters(HERE / "clusters"), rng, args)
    network = gone_on_from(args.judge)
    encoder = network.encoder
    for part in (encoder.words, encoder.places, encoder.types, encoder.norm, *encoder.layers[: args.freeze]):
        part.requires_grad_(False)
    trainer = Trainer(network, Layout(args.tokenizer, encoder.shape.relative), items, args, "cpu")
    trainer.fit()
    torch.save({"state": network.state_dict(), "shape": encoder.shape}, args.out)
    trainer.evaluate("after")


def in_file(path: Path) -> list[Cluster]:
    return [parse_cluster(block) for block in path.read_text(encoding="utf-8").split("\n\n") if block.strip()]


def chosen(
    items: Items, new: list[Cluster], known: list[Cluster], rng: random.Random, args: argparse.Namespace
) -> Items:
    """All pairs of the new clusters, and a sample of everything else; what is held out of the new ones is judged."""
    pairs: list[Pair] = []
    for cluster in new:
        if cluster.fold:
            mine = [pair for pair in pairs_within(cluster) if len(pair.allowed) == 1]
            pairs += rng.sample(mine, min(len(mine), 20))
    pairs += list(pairs_across([c for c in known if c.fold], len(pairs) // 8, rng))
    pairs += rng.sample(items.pairs, args.old)
    held_out = [p for c in new if not c.fold for p in pairs_within(c) if len(p.allowed) == 1]
    held_out += rng.sample(items.held_out, min(600, len(items.held_out)))

    def some(rows: list) -> list:  # type: ignore[type-arg]
        trained = [row for row in rows if not row.held_out]
        return rng.sample(trained, args.rows) + [row for row in rows if row.held_out]

    return Items(pairs, label_weights(pairs), some(items.useful), some(items.injection), held_out)


if __name__ == "__main__":
    main()
