"""Train the judge on our clusters and the public pairs; keep the weights that judge the held-out clusters best.

    python train.py --backbone bge-small-en-v1.5.onnx --tokenizer tokenizer.json --out judge.pt

Runs on a GPU where there is one; on two CPU cores 40,000 pairs take about half an hour an epoch.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from backbone import Judge, encode, encoder_from_onnx
from data import LABELS, Pair, balanced, pairs_across, pairs_within, read_clusters, read_public
from evaluate import report, score
from tokenizers import Tokenizer

HERE = Path(__file__).parent
HELD_OUT = (0,)  # folds that are never trained on: they choose the weights and fit the temperature


def main() -> None:
    args = parse_arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_pairs, held_out = load_pairs(args)
    print(f"{len(train_pairs)} pairs an epoch, {len(held_out)} held out, on {device}", flush=True)
    tokenizer = Tokenizer.from_file(str(args.tokenizer))
    tokenizer.enable_truncation(128)
    judge = Judge(encoder_from_onnx(args.backbone)).to(device)
    fit(judge, tokenizer, train_pairs, held_out, args, device)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", type=Path, required=True, help="ONNX export of a BERT embedding model")
    parser.add_argument("--tokenizer", type=Path, required=True, help="its tokenizer.json")
    parser.add_argument("--clusters", type=Path, default=HERE / "clusters")
    parser.add_argument("--public", type=Path, help="public_pairs.tsv.gz; without it only our clusters are used")
    parser.add_argument("--public-share", type=float, default=0.35, help="public pairs per pair of our own")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--limit", type=int, default=0, help="at most so many of our own pairs an epoch")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--smoothing", type=float, default=0.05)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


def load_pairs(args: argparse.Namespace) -> tuple[list[Pair], list[Pair]]:
    """The pairs to train on and those of the held-out folds, split by cluster."""
    rng = random.Random(args.seed)
    clusters = read_clusters(args.clusters)
    training = [cluster for cluster in clusters if cluster.fold not in HELD_OUT]
    own = [pair for cluster in training for pair in pairs_within(cluster)]
    if args.limit:
        own = balanced(own, args.limit, rng)
    own += pairs_across(training, len(own) // 8, rng)
    if args.public:
        own += balanced(read_public(args.public), int(len(own) * args.public_share), rng)
    held_out = [p for c in clusters if c.fold in HELD_OUT for p in pairs_within(c) if len(p.allowed) == 1]
    return own, held_out


def fit(
    judge: Judge,
    tokenizer: Tokenizer,
    pairs: list[Pair],
    held_out: list[Pair],
    args: argparse.Namespace,
    device: str,
) -> None:
    rng = random.Random(args.seed)
    optimizer = torch.optim.AdamW(judge.parameters(), lr=args.rate, weight_decay=0.01)
    steps = args.epochs * math.ceil(len(pairs) / args.batch)
    warmup = max(1, steps // 15)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warmup, max(0.0, (steps - step) / (steps - warmup)))
    )
    best, step, started = -1.0, 0, time.monotonic()
    for epoch in range(args.epochs):
        judge.train()
        for batch in batches(pairs, args.batch, rng):
            loss = set_loss(judge, tokenizer, batch, args.smoothing, device)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            step += 1
            if step % 50 == 0:
                left = (time.monotonic() - started) / step * (steps - step) / 60
                print(f"epoch {epoch + 1} step {step}/{steps} loss {loss.item():.3f}, {left:.0f} min left", flush=True)
        rows = score(judge, tokenizer, held_out, device)
        accuracy = report(rows, f"held-out clusters after epoch {epoch + 1}")
        if accuracy > best:
            best = accuracy
            torch.save(judge.state_dict(), args.out)


def batches(pairs: Sequence[Pair], size: int, rng: random.Random) -> list[list[Pair]]:
    """Shuffled batches of pairs of similar length, each pair in a random order."""
    turned = [pair.swapped() if rng.random() < 0.5 else pair for pair in pairs]
    rng.shuffle(turned)
    pool = size * 32
    ordered = [
        pair
        for start in range(0, len(turned), pool)
        for pair in sorted(turned[start : start + pool], key=lambda p: len(p.a) + len(p.b))
    ]
    made = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    rng.shuffle(made)
    return made


def set_loss(judge: Judge, tokenizer: Tokenizer, batch: list[Pair], smoothing: float, device: str) -> torch.Tensor:
    """Minus the logarithm of the probability on the allowed labels, slightly smoothed against certainty."""
    allowed = torch.tensor([[float(label in pair.allowed) for label in LABELS] for pair in batch], device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        logits = judge(**encode(tokenizer, [(pair.a, pair.b) for pair in batch], device))
    log_probabilities = torch.log_softmax(logits.float(), dim=-1)
    inside = torch.logsumexp(log_probabilities.masked_fill(allowed == 0, -1e4), dim=-1)
    return -((1 - smoothing) * inside + smoothing * log_probabilities.mean(-1)).mean()


if __name__ == "__main__":
    main()
