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
from batches import Layout, Texts, grouped
from data import LABELS, Pair
from evaluate import SWAP, Judged, auroc, report, softmax
from items import Items, read_items

HERE = Path(__file__).parent
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
OUTPUTS = ["relation", "useful", "injection"]


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
        "temperature": temperatures,
        "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (model, tokenizer)},
    }
    (args.folder / "judge.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")


class Runner:
    """Runs an exported graph on one thread."""

    def __init__(self, path: Path, layout: Layout) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._layout = layout

    def logits(self, texts: list[Texts]) -> np.ndarray:
        self._layout.read([text for pair in texts for text in pair if text is not None])
        found = np.zeros((len(texts), 8))
        for chosen in grouped([self._layout.length(each) for each in texts], 16, None):
            ids, mask, types = self._layout.batch([texts[i] for i in chosen])
            relation, useful, injection = self._session.run(OUTPUTS, dict(zip(INPUTS, (ids, mask, types), strict=True)))
            found[chosen] = np.concatenate([relation, useful[:, None], injection[:, None]], 1)
        return found

    def relation(self, pairs: list[Pair], temperature: float = 1.0) -> np.ndarray:
        forth = softmax(self.logits([(p.a, p.b) for p in pairs])[:, :6] / temperature)
        back = softmax(self.logits([(p.b, p.a) for p in pairs])[:, :6] / temperature)
        return (forth + back[:, SWAP]) / 2

    def calibrated(self, items: Items) -> dict[str, float]:
        """The temperatures that make held-out probabilities come true most often, and what the judge is worth then."""
        pairs = items.held_out
        truth = np.array([LABELS.index(next(iter(pair.allowed))) for pair in pairs])
        started = time.process_time()
        forth = self.logits([(p.a, p.b) for p in pairs])[:, :6]
        milliseconds = (time.process_time() - started) / len(pairs) * 1e3
        back = self.logits([(p.b, p.a) for p in pairs])[:, :6][:, SWAP]

        def loss(temperature: float) -> float:
            mean = (softmax(forth / temperature) + softmax(back / temperature)) / 2
            return float(-np.log(mean[np.arange(len(truth)), truth] + 1e-9).mean())

        grid = np.arange(0.6, 3.01, 0.05)
        best = {"relation": float(min(grid, key=loss))}
        mean = (softmax(forth / best["relation"]) + softmax(back / best["relation"])) / 2
        names = [LABELS[i] for i in truth]
        report([Judged(n, row) for n, row in zip(names, mean, strict=True)], f"both orders, T {best['relation']:.2f}")
        one = softmax(forth / best["relation"])
        report([Judged(n, row) for n, row in zip(names, one, strict=True)], "one order")
        print(f"  {milliseconds:.1f} ms of CPU for each pair and order")
        for head, column in (("useful", 6), ("injection", 7)):
            rows = items.rows(head, held_out=True)
            scores = self.logits([(r.a, r.b) for r in rows])[:, column]
            said = np.array([row.yes > 0.5 for row in rows])

            def row_loss(temperature: float, scores: np.ndarray = scores, said: np.ndarray = said) -> float:
                return float(np.logaddexp(0, np.where(said, -scores, scores) / temperature).mean())

            best[head] = float(min(grid, key=row_loss))
            right = ((scores > 0) == said).mean()
            print(f"  {head}: accuracy {right:.3f}, AUROC {auroc(scores, said):.3f}, T {best[head]:.2f}")
        return {name: round(value, 2) for name, value in best.items()}


if __name__ == "__main__":
    main()
