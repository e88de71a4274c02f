"""The process of a language model server: runs until its standard input is closed."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Load the model, serve it on a free port of 127.0.0.1, write the address down and wait."""
    import xllamacpp

    model, address = sys.argv[1:]
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.n_ctx = 4096
    parameters.n_parallel = 1
    # Two threads are ten times slower than one on two busy cores.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.n_gpu_layers = 0
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    partial = Path(f"{address}.part")
    partial.write_text(server.listening_address)
    partial.rename(address)
    sys.stdin.read()


if __name__ == "__main__":
    main()
