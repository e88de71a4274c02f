"""Load ONNX models for CPU inference; no network, no torch, no telemetry."""

from __future__ import annotations

import hashlib
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from alma.errors import ConfigurationError, ProviderError
from alma.process import trim_malloc


def load_session(model: Path, threads: int, error: type[ProviderError]) -> Any:
    """An onnxruntime session of the model; raises `error` if the file cannot be loaded."""
    # onnxruntime sends telemetry unless this is set before it is imported.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    onnxruntime = import_package("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Idle threads must not spin on a CPU.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The arena would keep the memory of the largest batch for the life of the process, and is not faster.
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(os.fspath(model), options, providers=["CPUExecutionProvider"])
    except Exception as exc:
        # The runtime's own errors share no base class.
        raise error(f"{model} is not a model that onnxruntime can load: {first_line(exc)}") from exc
    trim_malloc()
    return session


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file as hexadecimal text; raises OSError if it cannot be read."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def import_package(package: str) -> Any:
    """Import the package, or raise an error that says how to install it."""
    try:
        return import_module(package)
    except ImportError as exc:
        name = package.replace("_", "-")
        raise ConfigurationError(
            f"the local model needs {name}, which cannot be imported here ({exc}): run  pip install {name}, "
            f"or choose another embedding provider"
        ) from exc


def first_line(exc: Exception) -> str:
    """The first line of an error message, or the type of the error."""
    return (str(exc).strip() or type(exc).__name__).splitlines()[0]
