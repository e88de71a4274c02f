"""Measure what the rules learn from conversation snippets, beside another commit.

    python bench/extraction.py                                     # training/extraction/snippets.jsonl, beside main
    python bench/extraction.py --snippets training/judge/blind/snippets.jsonl --beside main
    python bench/extraction.py --show                              # every proposal and its match

A snippet has `messages` and the statements that are `expected` of them. Each tree is read in a process of its own.

A proposal and an expected statement are matched when one of two holds. *Words*: of the content words of each (stems,
without function words and without who is spoken of: "the user"), at least 60 % stand in the other, both deny or both
do not (what was tried: no success where failure is expected), and every number of the expected one is there; what was
tried may say its task and its reason in fields of their own. *Judge*: the judge says *same* of the two, asked in both
orders. Each matches one other at most, best first. Precision is the share of proposals that match, recall the share of
expected statements that are matched, `kind` the share of the matches that also became the right kind of memory.
`borne out` is the share of proposals that match or are contained in an expected statement: 75 % of their words and
all of their numbers stand in it, and both deny or both do not, as where one expected statement was told as two.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from alma.judge import default_judge
from alma.text.tokens import query_terms

ROOT = Path(__file__).resolve().parents[1]
OWN = ROOT / "training" / "extraction" / "snippets.jsonl"
_LEAST_COMMON = 0.6
_LEAST_CONTAINED = 0.75
_DENIALS = frozenset(["not", "never", "no", "failed", "fails", "didn't", "don't", "doesn't", "without", "longer"])
_SPOKEN_OF = frozenset(["user", "customer", "team"])
_FAILED = re.compile(
    r"(?:(?:did|does) not|n't) (?:work|help|fix|solve|resolve|change|stop|improve|make)|\bfailed\b|no effect|worse",
    re.I,
)
_WORDS = re.compile(r"[\w'’]+")
_NUMBERS = re.compile(r"\d+(?:[.,:]\d+)*")

# Run in the other tree, which may know neither this file nor the judge.
_READER = """
import json, sys
from alma.extraction import RuleBasedExtractor
extractor = RuleBasedExtractor()
for line in sys.stdin:
    found = extractor.extract(json.loads(line)["messages"]).facts
    names = ("fact_type", "content", "task", "strategy", "reason", "category", "success", "confidence")
    print(json.dumps([{name: getattr(fact, name) for name in names} for fact in found]), flush=True)
"""

Row = dict[str, Any]


@dataclass
class Score:
    """The results of one tree's proposals."""

    proposed: int = 0
    expected: int = 0
    matched: int = 0
    right_kind: int = 0
    borne_out: int = 0
    silent_right: int = 0
    silent: int = 0
    shown: list[str] = field(default_factory=list)

    def row(self) -> list[str]:
        shares = [
            (self.matched, self.proposed),
            (self.borne_out, self.proposed),
            (self.matched, self.expected),
            (self.right_kind, self.matched),
        ]
        numbers = [f"{part / whole:.3f}" if whole else "–" for part, whole in shares]
        return [*numbers, str(self.proposed), str(self.expected), f"{self.silent_right}/{self.silent}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snippets", type=Path, default=OWN)
    parser.add_argument("--beside", default="main", help="the commit to compare with; empty for none")
    parser.add_argument(
        "--show", action="store_true", help="print the proposals that match nothing, and what is missed"
    )
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.snippets.read_text(encoding="utf-8").splitlines()]
    table = Table("tree", "precision", "borne out", "recall", "kind", "proposed", "expected", "rightly silent")
    trees = {"this": ROOT / "src"}
    with tempfile.TemporaryDirectory() as folder:
        if args.beside:
            trees = {args.beside: _checked_out(args.beside, Path(folder)), **trees}
        for name, tree in trees.items():
            score = measured(rows, proposals(tree, rows))
            table.add_row(name, *score.row())
            if args.show and name == "this":
                print("\n".join(score.shown))
    Console().print(f"{args.snippets.name}: {len(rows)} snippets, judged by {default_judge().name}", table)


def _checked_out(commit: str, folder: Path) -> Path:
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def proposals(tree: Path, rows: Iterable[Row]) -> list[list[Row]]:
    """The proposals of a tree's rules for each snippet."""
    given = "".join(json.dumps(row) + "\n" for row in rows)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tree)!r}); {_READER.strip()}"]
    answer = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in answer.stdout.splitlines()]


def measured(rows: Sequence[Row], proposed: Sequence[Sequence[Row]]) -> Score:
    """Compare the proposals of each snippet with the expected statements."""
    score = Score()
    for row, found in zip(rows, proposed, strict=True):
        expected = row["expected"]
        pairs = matches(found, expected)
        score.proposed += len(found)
        score.expected += len(expected)
        score.matched += len(pairs)
        score.right_kind += sum(kind_of(found[i]) == expected[j]["kind"] for i, j in pairs)
        score.silent += not expected
        score.silent_right += not expected and not found
        contained = (any(is_contained(one, other["text"]) for other in expected) for one in found)
        matched = {i for i, _ in pairs}
        score.borne_out += sum(is_in or i in matched for i, is_in in enumerate(contained))
        told, met = {i for i, _ in pairs}, {j for _, j in pairs}
        score.shown += [f"+ {row['note']}: {one}" for i, one in enumerate(found) if i not in told]
        score.shown += [f"- {row['note']}: {one['text']}" for j, one in enumerate(expected) if j not in met]
    return score


def kind_of(proposal: Row) -> str:
    """The snippet kind of a proposal."""
    kinds = {"preference": "preference", "domain_knowledge": "fact"}
    kind = kinds.get(proposal["fact_type"], "strategy")
    return "profile" if kind == "preference" and proposal["category"] == "profile" else kind


def matches(found: Sequence[Row], expected: Sequence[Row]) -> list[tuple[int, int]]:
    """Match proposals with expected statements."""
    rated = [
        (rating, i, j)
        for i, one in enumerate(found)
        for j, other in enumerate(expected)
        if (rating := rated_match(one, other["text"])) > 0
    ]
    taken: list[tuple[int, int]] = []
    for _, i, j in sorted(rated, reverse=True):
        if all(i != one and j != other for one, other in taken):
            taken.append((i, j))
    return taken


def rated_match(proposal: Row, expected: str) -> float:
    """How well a proposal matches an expected statement; 0 if it does not."""
    content = proposal["content"]
    said = " ".join(filter(None, (content, proposal["task"], proposal["strategy"], proposal["reason"])))
    mine, all_of_mine, theirs = _words(content), _words(said), _words(expected)
    if mine and theirs and _agree(proposal, said, expected) and _numbers(expected) <= _numbers(said):
        covered = len(theirs & all_of_mine) / len(theirs)
        proper = len(mine & theirs) / len(mine)
        # What was tried may tell of its task in its content as well; then the strategy alone must be expected.
        strategy = _words(proposal["strategy"] or "")
        proper = max(proper, len(strategy & theirs) / max(1, len(strategy)))
        if min(covered, proper) >= _LEAST_COMMON:
            return covered + proper
    there, back = default_judge().compare([(content, expected), (expected, content)])
    return there["same"] if there.label == back.label == "same" else 0.0


def is_contained(proposal: Row, expected: str) -> bool:
    """Whether a proposal is contained in an expected statement."""
    content = proposal["content"]
    mine = _words(content)
    if not mine or not _agree(proposal, content, expected) or not _numbers(content) <= _numbers(expected):
        return False
    return len(mine & _words(expected)) >= _LEAST_CONTAINED * len(mine)


def _words(text: str) -> set[str]:
    return set(query_terms(text)) - _SPOKEN_OF


def _numbers(text: str) -> set[str]:
    return set(_NUMBERS.findall(text))


def _agree(proposal: Row, said: str, expected: str) -> bool:
    """Whether both are negated or both are not; for outcomes, whether success agrees."""
    if proposal["success"] is None:
        return _denies(said) == _denies(expected)
    return not (proposal["success"] and _FAILED.search(expected))


def _denies(text: str) -> bool:
    words = _WORDS.findall(text.lower().replace("’", "'"))
    return any(word in _DENIALS or word.endswith("n't") for word in words)


if __name__ == "__main__":
    main()
