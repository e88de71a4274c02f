"""Training pairs for the judge: parse the clusters, split them into folds, and read the public pairs."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

LABELS = ("same", "more", "less", "opposite", "supersedes", "other")
FOLDS = 10

MARKS = {"=": "same", "!": "opposite", ">": "narrower", "<": "broader", "~": "other", "^": "supersedes"}

# Which labels a pair of two lines of one cluster may have. A pair that is not listed is not used for training.
WITHIN: dict[tuple[str, str], tuple[str, ...]] = {
    ("same", "same"): ("same",),
    ("same", "opposite"): ("opposite",),
    ("same", "narrower"): ("less",),
    ("same", "broader"): ("more",),
    ("same", "other"): ("other",),
    ("same", "supersedes"): ("supersedes",),
    ("narrower", "broader"): ("more",),
    ("narrower", "opposite"): ("opposite",),
    ("broader", "other"): ("other", "more", "less"),
    ("opposite", "other"): ("other", "opposite"),
}

# The label sets of the public pairs use bits 1 same, 2 more, 4 less, 8 opposite, 16 other. A public contradiction is
# often two scenes that exclude each other, which an agent's memory would call another thing.
PUBLIC_BITS = ((1, ("same",)), (2, ("more",)), (4, ("less",)), (8, ("opposite", "supersedes")), (16, ("other",)))
SCENES = frozenset({"snli", "mnli"})

SWAPPED = {"more": "less", "less": "more"}


@dataclass(frozen=True)
class Cluster:
    """Texts around one statement: ways to say it, its opposites, narrower, broader, newer and near but other ones."""

    field: str
    kind: str
    language: str
    lines: tuple[tuple[str, str], ...]  # (role, text)

    @property
    def fold(self) -> int:
        """Which fold this cluster belongs to: a hash of its first text, so that adding clusters moves none."""
        return fold_of(self.lines[0][1])


@dataclass(frozen=True)
class Pair:
    """Two texts and the labels that are right for them, with the source they come from."""

    a: str
    b: str
    allowed: frozenset[str]
    source: str

    def swapped(self) -> Pair:
        """The same pair in the other order: more becomes less."""
        return Pair(self.b, self.a, frozenset(SWAPPED.get(label, label) for label in self.allowed), self.source)


def read_clusters(folder: Path) -> list[Cluster]:
    """Every cluster of the `*.txt` files of a folder, in the order of file names."""
    return [
        parse_cluster(block)
        for path in sorted(folder.glob("*.txt"))
        for block in path.read_text(encoding="utf-8").split("\n\n")
        if block.strip()
    ]


def parse_cluster(block: str) -> Cluster:
    """One block: a `# field | kind | language` line, then lines that begin with a mark."""
    head, *lines = block.strip().splitlines()
    field, kind, language = (part.strip() for part in head.removeprefix("# ").split("|"))
    return Cluster(field, kind, language, tuple((MARKS[line[0]], line[2:].strip()) for line in lines))


def pairs_within(cluster: Cluster) -> Iterator[Pair]:
    """All labelled pairs of a cluster's lines, in one order each."""
    source = f"own-{cluster.language}"
    for (role_a, a), (role_b, b) in itertools.combinations(cluster.lines, 2):
        if (role_a, role_b) in WITHIN:
            yield Pair(a, b, frozenset(WITHIN[role_a, role_b]), source)
        elif (role_b, role_a) in WITHIN:
            yield Pair(b, a, frozenset(WITHIN[role_b, role_a]), source)


def pairs_across(clusters: list[Cluster], count: int, rng: random.Random) -> Iterator[Pair]:
    """Pairs of texts of different clusters; two thirds of them share field and language."""
    by_topic: dict[tuple[str, str], list[Cluster]] = {}
    for cluster in clusters:
        by_topic.setdefault((cluster.field, cluster.language), []).append(cluster)
    while count > 0:
        first = rng.choice(clusters)
        pool = by_topic[first.field, first.language] if rng.random() < 2 / 3 else clusters
        second = rng.choice(pool)
        if second is not first:
            count -= 1
            a, b = rng.choice(first.lines)[1], rng.choice(second.lines)[1]
            yield Pair(a, b, frozenset({"other"}), "own-across")


def read_public(path: Path) -> Iterator[Pair]:
    """The public pairs with their label sets."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            a, b, bits, source = line.rstrip("\n").split("\t")
            allowed = {label for bit, labels in PUBLIC_BITS if int(bits) & bit for label in labels}
            if source in SCENES and int(bits) == 8:
                allowed.add("other")
            yield Pair(a, b, frozenset(allowed), source)


def other_number(pair: Pair, rng: random.Random) -> Pair | None:
    """A pair that says the same, with a number that both texts have changed in one of them."""
    shared = set(_NUMBER.findall(pair.a)) & set(_NUMBER.findall(pair.b))
    if pair.allowed != {"same"} or not shared:
        return None
    number = rng.choice(sorted(shared))
    changed = str(rng.choice([int(number) * 10, int(number) + 1, int(number) * 2 + 1, max(0, int(number) - 1)]))
    if changed == number:
        return None
    text = re.sub(rf"(?<!\d){number}(?!\d)", changed, pair.b)
    return Pair(pair.a, text, frozenset({"opposite", "supersedes", "other"}), "own-number")


_NUMBER = re.compile(r"(?<![\w.])\d{1,6}(?![\w.])")


@dataclass(frozen=True)
class Row:
    """A row for one of the two further heads: a text, or a task and a memory, and the probability of yes."""

    a: str
    b: str | None
    yes: float
    weight: float
    held_out: bool


def useful_rows(folder: Path, clusters: list[Cluster], rng: random.Random) -> list[Row]:
    """(task, memory) rows: those that were written for it, and tasks of the clusters as memories of what was done."""
    rows = []
    for path in sorted(folder.glob("useful_*.jsonl")):
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            rows.append(Row(line["task"], line["memory"], float(line["useful"]), 1.0, fold_of(line["task"]) == 0))
    strategies = [text for c in clusters if c.kind == "strategy" and c.fold for role, text in c.lines if role == "same"]
    tasks = [cluster for cluster in clusters if cluster.kind == "task" and cluster.fold]
    for cluster in tasks:
        said = [text for role, text in cluster.lines if role == "same"]
        near = [text for role, text in cluster.lines if role in ("other", "opposite")]
        for one, two in itertools.permutations(said, 2):
            rows.append(Row(one, as_memory(two, rng.choice(strategies), rng), 1.0, 0.35, False))
        for one in said:
            for two in near:
                rows.append(Row(one, as_memory(two, rng.choice(strategies), rng), 0.1, 0.35, False))
            other = rng.choice(rng.choice(tasks).lines)[1]
            rows.append(Row(one, as_memory(other, rng.choice(strategies), rng), 0.0, 0.35, False))
    return rows


def as_memory(task: str, strategy: str, rng: random.Random) -> str:
    """A past task as memories of outcomes and rules show it; mostly without a strategy, which was drawn by chance."""
    form = rng.choice(["{task}", "{task}", "When: {task}", "Task: {task}", "When: {task} Do: {strategy}"])
    return str(form.format(task=task, strategy=strategy))


def injection_rows(folder: Path, clusters: list[Cluster], rng: random.Random) -> list[Row]:
    """Texts with and without instructions aimed at their reader; rows that contrast stay in one fold."""
    rows, written = [], list[Row]()
    for path in sorted(folder.glob("injection_*.jsonl")):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for place, line in enumerate(lines):
            held_out = fold_of(f"{path.name} {place // 4}") == 0
            written.append(Row(line["text"], None, float(line["injection"]), 1.0, held_out))
    plain = [text for cluster in clusters if cluster.fold for _, text in cluster.lines]
    rows += written
    for row in written:
        if not row.held_out:
            around = rng.sample(plain, 2)
            rows.append(Row(f"{around[0]} {row.a} {around[1]}", None, row.yes, 0.5, False))
    rows += [Row(text, None, 0.0, 0.15, False) for text in rng.sample(plain, 6_000)]
    rows += [Row(". ".join(rng.sample(plain, 3)), None, 0.0, 0.15, False) for _ in range(2_000)]
    return rows


def fold_of(text: str) -> int:
    """Which fold a text belongs to, by its hash."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % FOLDS


def balanced(pairs: Iterable[Pair], count: int, rng: random.Random) -> list[Pair]:
    """At most `count` pairs, as evenly as they allow over sources and label sets."""
    groups: dict[tuple[str, frozenset[str]], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault((pair.source, pair.allowed), []).append(pair)
    for group in groups.values():
        rng.shuffle(group)
    chosen: list[Pair] = []
    remaining = sorted(groups.values(), key=len)
    for position, group in enumerate(remaining):
        share = (count - len(chosen)) // (len(remaining) - position)
        chosen += group[:share]
    rng.shuffle(chosen)
    return chosen
