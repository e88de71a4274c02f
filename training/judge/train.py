"""Train the judge's network on our clusters, the rows of the two further heads, and the public pairs.

    python train.py --backbone mpnet.npz --tokenizer mpnet.json --out teacher_1.pt --save-targets
    python train.py --backbone bge.npz --tokenizer bge.json --teachers teacher_1.pt.targets teacher_2.pt.targets \
        --epochs 8 --rate 2e-4 --batch 256 --out student.pt

A student learns from what the teachers say about the same items, and from the labels. Minutes on one GPU.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from batches import Layout, Texts, grouped
from data import LABELS, Pair
from evaluate import SWAP, Judged, auroc, report, softmax
from items import Items, read_items
from network import Network, started_from

HERE = Path(__file__).parent


def main() -> None:
    args = parse_arguments()
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    items = read_items(args.clusters, args.heads, args.public, args.public_weight, args.smoke)
    network = started_from(args.backbone, args.keep).to(device)
    layout = Layout(args.tokenizer, network.encoder.shape.relative)
    trainer = Trainer(network, layout, items, args, device)
    trainer.fit()
    torch.save({"state": network.state_dict(), "shape": network.encoder.shape}, args.out)
    if args.save_targets:
        torch.save(trainer.targets(), f"{args.out}.targets")
    trainer.evaluate("at the end", every=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--clusters", type=Path, default=HERE / "clusters")
    parser.add_argument("--heads", type=Path, default=HERE / "heads")
    parser.add_argument("--public", type=Path, help="public_pairs.tsv.gz; without it only our own texts are used")
    parser.add_argument("--public-weight", type=float, default=0.4, help="of all public pairs, against 1 for our own")
    parser.add_argument("--keep", type=lambda text: [int(n) for n in text.split(",")], help="layers to keep")
    parser.add_argument("--teachers", type=Path, nargs="*", default=[], help="their saved targets")
    parser.add_argument("--save-targets", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=4e-5)
    parser.add_argument("--smoothing", type=float, default=0.04)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--smoke", action="store_true", help="a few items only, to see that it runs")
    return parser.parse_args()


class Trainer:
    def __init__(self, network: Network, layout: Layout, items: Items, args: argparse.Namespace, device: str) -> None:
        self.network, self.layout, self.items, self.args, self.device = network, layout, items, args, device
        self.rng = random.Random(args.seed)
        rows = items.useful + items.injection
        layout.read([t for p in items.pairs + items.held_out for t in (p.a, p.b)])
        layout.read([text for row in rows for text in (row.a, row.b) if text is not None])
        self.allowed = torch.tensor([[float(label in p.allowed) for label in LABELS] for p in items.pairs])
        self.weights = torch.tensor(items.weights) * len(items.weights) / sum(items.weights)
        taught = [torch.load(path, weights_only=False) for path in args.teachers]
        self.taught = (
            {name: torch.stack([each[name] for each in taught]).mean(0) for name in taught[0]} if taught else {}
        )

    def fit(self) -> None:
        optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=self.args.rate, weight_decay=0.01, fused=self.device == "cuda"
        )
        plan = [batch for _ in range(self.args.epochs) for batch in self.epoch()]
        warmup = max(1, len(plan) // 15)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / warmup, max(0.0, (len(plan) - step) / (len(plan) - warmup)))
        )
        self.network.train()
        started = time.monotonic()
        for step, (task, chosen) in enumerate(plan, 1):
            loss = self.relation_loss(chosen) if task == "relation" else self.row_loss(task, chosen)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if step % 500 == 0:
                each = (time.monotonic() - started) / step
                print(
                    f"{self.args.out.name}: step {step}/{len(plan)} {task} loss {loss.item():.3f} {each:.3f} s",
                    flush=True,
                )

    def epoch(self) -> list[tuple[str, list[int]]]:
        """The batches of one pass over everything, those of the heads twice, in a random order."""
        size, rng = self.args.batch, self.rng
        made = [("relation", c) for c in grouped([self.layout.length((p.a, p.b)) for p in self.items.pairs], size, rng)]
        for name in ("useful", "injection"):
            rows = self.items.rows(name, held_out=False)
            for _ in range(2):
                made += [(name, c) for c in grouped([self.layout.length((r.a, r.b)) for r in rows], size // 2, rng)]
        rng.shuffle(made)
        return made

    def relation_loss(self, chosen: list[int]) -> torch.Tensor:
        swapped = self.rng.random() < 0.5
        pairs = [self.items.pairs[i] for i in chosen]
        texts: list[Texts] = [(p.b, p.a) if swapped else (p.a, p.b) for p in pairs]
        order = SWAP if swapped else list(range(len(LABELS)))
        allowed = self.allowed[chosen][:, order].to(self.device)
        weights = self.weights[chosen].to(self.device)
        logs = torch.log_softmax(self.outputs(texts)[0].float(), -1)
        inside = -torch.logsumexp(logs.masked_fill(allowed == 0, -1e4), -1)
        loss = (1 - self.args.smoothing) * inside - self.args.smoothing * logs.mean(-1)
        if self.taught:
            target = self.taught["relation"][chosen][:, order].to(self.device).float()
            loss = 0.25 * loss + 0.75 * -(target * logs).sum(-1)
            weights = weights.clamp(min=0.5)
        return (loss * weights).mean()

    def row_loss(self, task: str, chosen: list[int]) -> torch.Tensor:
        rows = self.items.rows(task, held_out=False)
        yes = torch.tensor([rows[i].yes for i in chosen], device=self.device) * 0.96 + 0.02
        weights = torch.tensor([rows[i].weight for i in chosen], device=self.device)
        if self.taught:
            yes = 0.4 * yes + 0.6 * self.taught[task][chosen].to(self.device).float()
        logits = self.outputs([(rows[i].a, rows[i].b) for i in chosen])[1 if task == "useful" else 2].float()
        return (F.binary_cross_entropy_with_logits(logits, yes, reduction="none") * weights).mean()

    def outputs(self, texts: list[Texts]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            batch = (torch.from_numpy(part).to(self.device) for part in self.layout.batch(texts))
            found: tuple[torch.Tensor, torch.Tensor, torch.Tensor] = self.network(*batch)
        return found

    @torch.no_grad()
    def said(self, texts: list[Texts]) -> list[np.ndarray]:
        """The logits of all three heads about these texts."""
        self.network.eval()
        self.layout.read([text for pair in texts for text in pair if text is not None])
        found: list[np.ndarray] = [np.empty(0)] * len(texts)
        for chosen in grouped([self.layout.length(each) for each in texts], 512, None):
            relation, useful, injection = self.outputs([texts[i] for i in chosen])
            columns = torch.cat([relation, useful[:, None], injection[:, None]], -1).float().cpu().numpy()
            for i, row in zip(chosen, columns, strict=True):
                found[i] = row
        return found

    def both_orders(self, pairs: list[Pair]) -> np.ndarray:
        """The probabilities of the labels, as the mean of both orders."""
        forth = softmax(np.stack(self.said([(p.a, p.b) for p in pairs]))[:, :6])
        back = softmax(np.stack(self.said([(p.b, p.a) for p in pairs]))[:, :6])
        return (forth + back[:, SWAP]) / 2

    def targets(self) -> dict[str, torch.Tensor]:
        """What this network says about everything that is trained on."""
        made = {"relation": torch.tensor(self.both_orders(self.items.pairs), dtype=torch.float16)}
        for name, column in (("useful", 6), ("injection", 7)):
            rows = np.stack(self.said([(r.a, r.b) for r in self.items.rows(name, held_out=False)]))
            made[name] = torch.sigmoid(torch.tensor(rows[:, column])).half()
        return made

    def evaluate(self, title: str, every: bool = False) -> None:
        """Print how the held-out clusters and rows are judged."""
        found = self.both_orders(self.items.held_out)
        judged = [Judged(next(iter(p.allowed)), row) for p, row in zip(self.items.held_out, found, strict=True)]
        name = self.args.out.name
        report(judged, f"{name} {title}, held-out clusters")
        if every:
            for source in ("own-en", "not English"):
                is_part = [(p.source == "own-en") == (source == "own-en") for p in self.items.held_out]
                report([j for j, chosen in zip(judged, is_part, strict=True) if chosen], f"{name} {title}, {source}")
        for head, column in (("useful", 6), ("injection", 7)):
            rows = self.items.rows(head, held_out=True)
            if rows:
                scores = np.stack(self.said([(r.a, r.b) for r in rows]))[:, column]
                truth = np.array([row.yes > 0.5 for row in rows])
                right = ((scores > 0) == truth).mean()
                print(
                    f"  {name} {head}: {len(rows)} rows, accuracy {right:.3f}, AUROC {auroc(scores, truth):.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
