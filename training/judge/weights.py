"""Read the published weights that training starts from, and pack them for a machine that only takes small files.

python weights.py model.safetensors mpnet.npz
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]


def read_arrays(path: Path) -> Arrays:
    """The weights of a `.safetensors` or `.onnx` file, or of what `pack.py` made of one."""
    if path.suffix == ".npz":
        packed = np.load(path)
        return {
            name.removesuffix(".int8"): packed[name].astype(np.float32)
            * (packed[name.removesuffix(".int8") + ".scale"] if name.endswith(".int8") else 1.0)
            for name in packed.files
            if not name.endswith(".scale")
        }
    if path.suffix == ".safetensors":
        from safetensors.numpy import load_file

        return load_file(path)
    return read_onnx(path)


def read_onnx(path: Path) -> Arrays:
    """The weights of an exported encoder.

    Exports name biases and norms as the model does; the matrices of linear layers are anonymous and transposed, and
    are recognised by the node that multiplies with them, just before the bias of their layer is added.
    """
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    matrix_of = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul"}
    named = {name.removeprefix("bert."): array for name, array in arrays.items() if "." in name}
    for node in graph.node:
        if node.op_type != "Add":
            continue
        bias, product = (node.input[0], node.input[1]) if node.input[0] in arrays else (node.input[1], node.input[0])
        if bias.endswith(".bias") and matrix_of.get(product) in arrays:
            named[bias.removeprefix("bert.").removesuffix("bias") + "weight"] = arrays[matrix_of[product]].T.copy()
    return named


def read_judge(path: Path) -> Arrays:
    """The weights of an exported judge as floating-point numbers, by the names of the network: to go on training."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    arrays = {name: array for name, array in stored.items() if array.dtype == np.float32 and "_scale" not in name}
    matrices = []
    for name in stored:
        if name.endswith("_quantized"):
            short = name.removesuffix("_quantized")
            zero = stored[f"{short}_zero_point"].astype(np.float32)
            array = (stored[name].astype(np.float32) - zero) * stored[f"{short}_scale"]
            if short.startswith("onnx::"):
                matrices.append(array.T)
            else:
                arrays[short] = array if "encoder." in short else array.T
    # The anonymous ones are the linear layers of the encoder, in the order in which they are used.
    for place, array in enumerate(matrices):
        layer, part = divmod(place, 6)
        arrays[f"encoder.layers.{layer}.{('q', 'k', 'v', 'o', 'up', 'down')[part]}.weight"] = array
    return arrays


def packed(arrays: Arrays) -> Arrays:
    """Matrices as 8-bit rows with a scale each; everything else as it is."""
    made: Arrays = {}
    for name, array in arrays.items():
        if array.ndim == 2 and array.dtype == np.float32 and array.size > 10_000:
            scale = np.abs(array).max(1, keepdims=True) / 127 + 1e-12
            made[f"{name}.int8"] = np.round(array / scale).astype(np.int8)
            made[f"{name}.scale"] = scale.astype(np.float32)
        elif array.dtype == np.float32:
            made[name] = array
    return made


if __name__ == "__main__":
    np.savez(Path(sys.argv[2]), **packed(read_arrays(Path(sys.argv[1]))))
