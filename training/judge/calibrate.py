"""Calibrate an exported judge on what was held out, say what it is worth, and describe it in `judge.json`.

    python calibrate.py --name alma-judge-1 ../../src/alma/judge/data

The folder holds `judge.onnx` and `tokenizer.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path

import numpy as np
import onnxruntime
from batches import Layout, Texts
from data import LABELS
from evaluate import SWAP, Judged, auroc, report, softmax
from items import Items, read_items

HERE = Path(__file__).parent
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
OUTPUTS = ["relation", "useful", "injection"]
# The head *useful* told held-out rows of its own writers apart, and the blind ones no better than chance.
SHIPPED = ("relation", "injection")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", default="alma-judge-1")
    args = parser.parse_args()
    model, tokenizer = args.folder / "judge.onnx", args.folder / "tokenizer.json"
    items = read_items(HERE / "clusters", HERE / "heads", None, 0.0, smoke=False)
    relative = '"<s>"' in tokenizer.read_text(encoding="utf-8")
    temperatures = Runner(model, Layout(tokenizer, relative)).calibrated(items)
    described = {
        "name": args.name,
        "labels": list(LABELS),
        "max_tokens": 128,
        "both_orders": True,
        "temperature": {name: temperatures[name] for name in SHIPPED},
        "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (model, tokenizer)},
    }
    (args.folder / "judge.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")


class Runner:
    """Runs an exported graph on one thread, an item at a time: its 8-bit arithmetic depends on the batch."""

    def __init__(self, path: Path, layout: Layout) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._layout = layout

    def logits(self, items: list[list[Texts]]) -> np.ndarray:
        """The outputs for each item, which is a text or a pair, or both orders of a pair."""
        self._layout.read([text for item in items for texts in item for text in texts if text is not None])
        found = np.zeros((len(items), len(items[0]), 8))
        for place, item in enumerate(items):
            inputs = dict(zip(INPUTS, self._layout.batch(item), strict=True))
            outputs = self._session.run(OUTPUTS, inputs)
            found[place] = np.concatenate([output.reshape(len(item), -1) for output in outputs], 1)
        return found

    def calibrated(self, items: Items) -> dict[str, float]:
        """The temperatures that make held-out probabilities come true most often, and what the judge is worth then."""
        pairs = items.held_out
        truth = np.array([LABELS.index(next(iter(pair.allowed))) for pair in pairs])
        started = time.process_time()
        logits = self.logits([[(pair.a, pair.b), (pair.b, pair.a)] for pair in pairs])[:, :, :6]
        milliseconds = (time.process_time() - started) / len(pairs) * 1e3
        logits[:, 1] = logits[:, 1][:, SWAP]

        def loss(temperature: float) -> float:
            mean = softmax(logits / temperature).mean(1)
            return float(-np.log(mean[np.arange(len(truth)), truth] + 1e-9).mean())

        grid = np.arange(0.6, 3.01, 0.05)
        best = {"relation": float(min(grid, key=loss))}
        judged = softmax(logits / best["relation"]).mean(1)
        rows = [Judged(LABELS[label], row) for label, row in zip(truth, judged, strict=True)]
        report(rows, f"held-out clusters, T {best['relation']:.2f}")
        for language in ("own-en", "others"):
            chosen = [
                row for row, p in zip(rows, pairs, strict=True) if (p.source == "own-en") == (language == "own-en")
            ]
            report(chosen, language)
        print(f"  {milliseconds:.1f} ms of CPU for each pair")
        for head, column in (("useful", 6), ("injection", 7)):
            written = items.rows(head, held_out=True)
            scores = self.logits([[(row.a, row.b)] for row in written])[:, 0, column]
            said = np.array([row.yes > 0.5 for row in written])

            def row_loss(temperature: float, scores: np.ndarray = scores, said: np.ndarray = said) -> float:
                return float(np.logaddexp(0, np.where(said, -scores, scores) / temperature).mean())

            best[head] = float(min(grid, key=row_loss))
            right = ((scores > 0) == said).mean()
            print(f"  {head}: accuracy {right:.3f}, AUROC {auroc(scores, said):.3f}, T {best[head]:.2f}")
        return {name: round(value, 2) for name, value in best.items()}


if __name__ == "__main__":
    main()
