"""PyTorch's own samples of each of its operators: results and gradients"""
# run: alone memory=64GiB

import hashlib
import itertools
import multiprocessing
import os
import sys
import types
import unittest
import warnings

from helpers.report import deterministic_torch, digest, report

PROCESSES = 12
SAMPLES = 12  # of an operator and a type
CHARACTERS_OF_ERROR = 160


def database():
    """Each operator with its name, in a fixed order."""
    # PyTorch's test code imports this package, which few machines have, for a base class.
    sys.modules.setdefault('expecttest', types.SimpleNamespace(TestCase=unittest.TestCase))
    from torch.testing._internal.common_methods_invocations import op_db
    named = {f'{op.name} {op.variant_test_name}'.strip(): op for op in op_db}
    return sorted(named.items())


def share(index):
    """The results of every PROCESSES-th operator."""
    torch = deterministic_torch()
    # What has no deterministic algorithm runs all the same, and may not repeat.
    torch.use_deterministic_algorithms(True, warn_only=True)
    warnings.simplefilter('ignore')
    results = {}
    for name, op in itertools.islice(database(), index, None, PROCESSES):
        for dtype in (torch.float32, torch.int32, torch.bfloat16, torch.complex64):
            if dtype in op.supported_dtypes('cuda'):
                results[f'{name} {dtype}'] = digest_of(torch, op, dtype)
    return results


def digest_of(torch, op, dtype):
    gradients = op.supports_autograd and dtype == torch.float32
    samples = op.sample_inputs('cuda', dtype, requires_grad=gradients)
    whole = hashlib.sha256()
    torch.manual_seed(SAMPLES)
    for number, sample in enumerate(itertools.islice(samples, SAMPLES)):
        torch.manual_seed(number)
        try:
            for leaf in computed(torch, op, sample, gradients):
                whole.update(leaf_digest(torch, leaf).encode())
        except Exception as error:  # natively as well: some samples need other settings
            if 'CUDA error' in str(error):
                raise
            whole.update(str(error)[:CHARACTERS_OF_ERROR].encode())
    return whole.hexdigest()[:16]


def computed(torch, op, sample, gradients):
    """The tensors and values of the result, then the gradients of the sample's tensors."""
    from torch.utils._pytree import tree_leaves
    result = sample.output_process_fn_grad(op(sample.input, *sample.args, **sample.kwargs))
    leaves = tree_leaves(result)
    yield from leaves
    if not gradients:
        return

    def differentiable(values):
        return [one for one in values if isinstance(one, torch.Tensor) and one.requires_grad]

    outputs = differentiable(leaves)
    inputs = differentiable(tree_leaves((sample.input, sample.args, sample.kwargs)))
    if outputs and inputs:
        ones = [torch.ones_like(one) for one in outputs]
        yield from torch.autograd.grad(outputs, inputs, ones, allow_unused=True)


def leaf_digest(torch, leaf):
    if not isinstance(leaf, torch.Tensor):
        return repr(leaf) if isinstance(leaf, (bool, int, float, complex, str)) else ''
    dense = leaf.detach() if leaf.layout == torch.strided else leaf.detach().to_dense()
    return digest(dense.resolve_conj().resolve_neg())


def main():
    os.environ['PYTHONHASHSEED'] = '0'  # some samples are listed in the order of a set
    os.environ['OMP_NUM_THREADS'] = '1'
    import torch  # noqa: F401, for its version
    with multiprocessing.get_context('spawn').Pool(PROCESSES) as pool:
        shares = pool.map(share, range(PROCESSES), chunksize=1)
    report(**{name: value for one in shares for name, value in one.items()})


if __name__ == '__main__':
    main()
