"""Inference: ONNX models and their tokenizers, loaded for the processor; no network, no torch, no telemetry."""

from __future__ import annotations

import hashlib
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from alma.errors import ConfigurationError, ProviderError
from alma.process import return_unused_memory


def load_session(model: Path, threads: int, error: type[ProviderError]) -> Any:
    """The model as onnxruntime runs it; `error` is raised where it cannot be loaded."""
    # The runtime reports to its maker unless told not to before it is imported; ALMA sends nothing anywhere.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    onnxruntime = imported("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that wait for work must not keep a processor busy.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # It would keep what the largest batch took for as long as the process lives, and is not faster.
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(os.fspath(model), options, providers=["CPUExecutionProvider"])
    except Exception as exc:
        # The runtime's own errors share no base class.
        raise error(f"{model} is no model that onnxruntime can load: {first_line(exc)}") from exc
    return_unused_memory()
    return session


def load_tokenizer(file: Path, error: type[ProviderError]) -> Any:
    """The tokenizer, which neither truncates nor pads by itself; `error` is raised where it cannot be loaded."""
    tokenizers = imported("tokenizers")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(os.fspath(file))
    except Exception as exc:
        # The library raises plain Exception.
        raise error(f"{file} is no tokenizer: {first_line(exc)}") from exc
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file; an `OSError` where it cannot be read."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def imported(package: str) -> Any:
    """The package, or an error that says how to get it."""
    try:
        return import_module(package)
    except ImportError as exc:
        name = package.replace("_", "-")
        raise ConfigurationError(
            f"the local model needs {name}, which cannot be imported here ({exc}): run  pip install {name}, "
            f"or choose another provider of embeddings"
        ) from exc


def first_line(exc: Exception) -> str:
    """The first line of what an error says, or its type."""
    return (str(exc).strip() or type(exc).__name__).splitlines()[0]
