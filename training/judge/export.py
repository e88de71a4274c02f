"""Export a trained network as an ONNX graph with 8-bit weights.

python export.py --weights student.pt --tokenizer bge.json --out ../../src/alma/judge/data
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch
from calibrate import INPUTS, OUTPUTS
from network import Network
from onnxruntime.quantization import QuantType, quantize_dynamic


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    saved = torch.load(args.weights, map_location="cpu", weights_only=False)
    network = Network(saved["shape"])
    network.load_state_dict(saved["state"])
    exact, small = args.out / "exact.onnx", args.out / "judge.onnx"
    export(network.eval(), exact)
    # Eight bits, not seven (`reduce_range`), which change a probability by .07 on average. Processors without VNNI
    # saturate the rare sums that are too large.
    quantize_dynamic(exact, small, per_channel=True, weight_type=QuantType.QInt8)
    exact.unlink()
    shutil.copy(args.tokenizer, args.out / "tokenizer.json")


def export(network: Network, path: Path) -> None:
    ids = torch.ones(2, 9, dtype=torch.long)
    axes = {name: {0: "batch", 1: "tokens"} for name in INPUTS} | {name: {0: "batch"} for name in OUTPUTS}
    torch.onnx.export(
        network,
        (ids, torch.ones_like(ids), torch.zeros_like(ids)),
        str(path),
        input_names=INPUTS,
        output_names=OUTPUTS,
        dynamic_axes=axes,
        opset_version=17,
        dynamo=False,
    )


if __name__ == "__main__":
    main()
