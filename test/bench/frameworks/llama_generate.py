"""llama.cpp: 32 tokens by small models of random weights, f16, q8_0 and q4_k, on GPU and CPU"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# What `node test/dist/llama/main.js --build` made. The packages that are installed come first.
sys.path.append(str(Path(__file__).parents[3] / 'build' / 'llama'))

import llama_cpp
import numpy

from helpers import llama_model
from helpers.report import digest, report, timed

PROMPT = list(range(300, 312))
TOKENS = 32
# Difference from the CPU's logits, relative to their own deviation, both as root mean squares.
# Both sides round activations to 16 or 8 bits, and a sum in another order rounds some differently.
TOLERANCES = {'f16': 0.01, 'q8_0': 0.05, 'q4_k': 0.05}
WITHOUT_GRAPHS = 'GGML_CUDA_DISABLE_GRAPHS'


def load(path, layers):
    on_gpu = layers != 0
    return llama_cpp.Llama(
        str(path), n_gpu_layers=layers, n_ctx=256, n_batch=16, n_ubatch=16, logits_all=True,
        offload_kqv=on_gpu, op_offload=on_gpu, n_threads=2, verbose='--verbose' in sys.argv,
    )


def generate(model):
    """The logits of all tokens, and the tokens after the prompt: those with the greatest logits."""
    model.reset()
    model.eval(PROMPT)
    tokens = []
    for _ in range(TOKENS):
        tokens.append(int(model.scores[model.n_tokens - 1].argmax()))
        model.eval(tokens[-1:])
    return model.scores[: model.n_tokens].copy(), tokens


def check(path, kind, logits, tokens):
    """The CPU computes the same logits of the same tokens, but for rounding."""
    model = load(path, 0)
    model.eval(PROMPT + tokens)
    expected = model.scores[: model.n_tokens]
    difference = numpy.sqrt(((logits - expected) ** 2).mean()) / expected.std()
    agree = numpy.mean(expected[len(PROMPT) - 1 : -1].argmax(axis=1) == tokens)
    text = f'{kind}: {agree:.0%} of tokens agree, logits differ by {difference:.4f}'
    print(text, file=sys.stderr)
    assert difference < TOLERANCES[kind], (kind, difference)
    assert len(set(tokens)) > TOKENS // 4, tokens


def run(directory):
    results, times = {}, []
    for kind in TOLERANCES:
        path = Path(directory) / f'{kind}.gguf'
        llama_model.write(path, kind)
        model = load(path, -1)
        (logits, tokens), seconds = timed(lambda: generate(model), repeat=2)
        times += seconds
        check(path, kind, logits, tokens)
        results[kind] = digest(logits)
    return results, times


with tempfile.TemporaryDirectory() as directory:
    results, times = run(directory)
if WITHOUT_GRAPHS not in os.environ:
    environment = {**os.environ, WITHOUT_GRAPHS: '1'}
    output = subprocess.check_output([sys.executable, *sys.argv], env=environment)
    for kind, logits in json.loads(output)['results'].items():
        results[f'{kind} without graphs'] = logits
report(times, **results)
