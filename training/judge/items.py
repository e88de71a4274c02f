"""What the judge is trained on and what is held out: pairs with weights, and the rows of the two further heads."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from data import (
    Pair,
    Row,
    injection_rows,
    other_number,
    pairs_across,
    pairs_within,
    read_clusters,
    read_public,
    useful_rows,
)

# How much of the loss each label is to have among our own pairs, whatever their number.
SHARES = {"same": 0.3, "opposite": 0.22, "other": 0.26, "supersedes": 0.1, "more": 0.06, "less": 0.06}


@dataclass
class Items:
    """All that is trained on: pairs for the first head, rows for the others; and what is held out."""

    pairs: list[Pair]
    weights: list[float]
    useful: list[Row]
    injection: list[Row]
    held_out: list[Pair]

    def rows(self, name: str, held_out: bool) -> list[Row]:
        rows: list[Row] = getattr(self, name)
        return [row for row in rows if row.held_out == held_out]


def read_items(clusters_at: Path, heads: Path, public_at: Path | None, public_weight: float, smoke: bool) -> Items:
    """Everything, in the same order each time, so that what teachers said fits."""
    rng = random.Random(20)
    clusters = read_clusters(clusters_at)
    training = [cluster for cluster in clusters if cluster.fold]
    own = [pair for cluster in training for pair in pairs_within(cluster)]
    numbers = [made for pair in own if (made := other_number(pair, rng))]
    unsure = {pair for pair in own if pair.allowed == {"opposite", "other"}}
    own = [pair for pair in own if pair not in unsure] + rng.sample(sorted(unsure, key=repr), len(unsure) // 3)
    own += list(pairs_across(training, len(own) // 2, rng)) + numbers
    weights = label_weights(own)
    public = list(read_public(public_at)) if public_at else []
    total, share = sum(weights), public_weight / max(1, len(public))
    held_out = [p for c in clusters if not c.fold for p in pairs_within(c) if len(p.allowed) == 1]
    items = Items(
        own + public,
        weights + [share * total] * len(public),
        useful_rows(heads, clusters, rng),
        injection_rows(heads, clusters, rng),
        held_out,
    )
    if smoke:
        chosen = rng.sample(range(len(items.pairs)), 2_000)
        items.pairs, items.weights = [items.pairs[i] for i in chosen], [items.weights[i] for i in chosen]
        items.useful, items.injection = rng.sample(items.useful, 600), rng.sample(items.injection, 600)
    return items


def label_weights(pairs: list[Pair]) -> list[float]:
    """A weight for each pair, so that each label has its share of the loss; sets of labels weigh little."""
    counts: dict[frozenset[str], int] = {}
    for pair in pairs:
        counts[pair.allowed] = counts.get(pair.allowed, 0) + 1
    total = len(pairs)

    def weight(pair: Pair) -> float:
        if len(pair.allowed) > 1:
            return 0.4
        return SHARES[next(iter(pair.allowed))] * total / counts[pair.allowed]

    return [weight(pair) for pair in pairs]
