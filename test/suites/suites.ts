import path from 'node:path';

/** A public test suite that runs on the simulated GPU through the product. */
export interface Suite {
  readonly name: string;
  /** Name and version, for docs/compatibility.md. */
  readonly release: string;
  /** Python packages with their versions, dependencies included. */
  readonly packages: readonly string[];
  /** The package whose source distribution has the tests, if they are not among the packages. */
  readonly source?: string;
  /** Directory of the tests, below that of the packages or the source. */
  readonly tests: string;
  /** Directories with test files, below `tests`. */
  readonly directories: readonly string[];
  /** The test files that CI runs, within some minutes. */
  readonly inCi: readonly string[];
  readonly pytest: readonly string[];
  /** Environment of the tests. @param packages directory of the packages */
  environment(packages: string): NodeJS.ProcessEnv;
}

const PYTEST = [
  'pytest==9.2.0',
  'pytest-timeout==2.4.0',
  'iniconfig==2.3.1',
  'packaging==26.3',
  'pluggy==1.7.0',
  'pygments==2.21.0',
];

const COMPILERS = [
  'nvidia-cuda-nvrtc==13.0.88',
  'nvidia-cuda-runtime==13.0.96',
  'nvidia-cuda-cccl==13.0.85',
];

function toolkit(packages: string): NodeJS.ProcessEnv {
  const root = path.join(packages, 'nvidia', 'cu13');
  return { CUDA_PATH: root, CUDA_HOME: root, LD_LIBRARY_PATH: path.join(root, 'lib') };
}

/** CuPy compiles its kernels with NVRTC when it runs; its own switch makes that emit PTX. */
const CUPY: Suite = {
  name: 'cupy',
  release: 'CuPy 14.2.0',
  packages: [
    ...PYTEST,
    ...COMPILERS,
    'cupy-cuda13x==14.2.0',
    'cuda-pathfinder==1.9.0',
    'numpy==2.4.6',
    'nvidia-cuda-crt==13.0.88',
    'nvidia-cuda-nvcc==13.0.88',
    'nvidia-curand==10.4.5.25',
    'nvidia-nvvm==13.0.88',
  ],
  source: 'cupy==14.2.0',
  tests: 'tests/cupy_tests',
  directories: ['core_tests', 'indexing_tests', 'sorting_tests'],
  inCi: [
    'core_tests/test_elementwise.py',
    'core_tests/test_raw.py',
    'core_tests/test_reduction.py',
    'core_tests/test_scan.py',
    'core_tests/test_userkernel.py',
    'indexing_tests/test_indexing.py',
    'indexing_tests/test_insert.py',
    'sorting_tests/test_count.py',
  ],
  // Kernels that Jitify or nvcc compile take minutes, or are machine code.
  pytest: ['-m', 'not multi_gpu and not slow', '-k', 'not itify and not NVCC and not nvcc'],
  environment: (packages) => ({
    ...toolkit(packages),
    CUPY_COMPILE_WITH_PTX: '1',
    // CuPy ignores that its machine code of CUB does not run, and returns what was in the memory.
    CUPY_ACCELERATORS: '',
  }),
};

const NUMBA: Suite = {
  name: 'numba-cuda',
  release: 'numba-cuda 0.30.4',
  // Without nvJitLink, so that the driver links PTX.
  packages: [
    ...PYTEST,
    ...COMPILERS,
    'numba-cuda==0.30.4',
    'cuda-bindings==13.5.0',
    'filecheck==1.0.6',
    'cuda-core==1.2.2',
    'cuda-pathfinder==1.9.0',
    'llvmlite==0.50.0',
    'numba==0.68.1',
    'numpy==2.4.6',
    'nvidia-nvvm==13.0.88',
  ],
  tests: 'numba_cuda/numba/cuda/tests',
  directories: ['cudapy', 'cudadrv'],
  inCi: [
    'cudadrv/test_cuda_memory.py',
    'cudadrv/test_cuda_ndarray.py',
    'cudadrv/test_events.py',
    'cudadrv/test_streams.py',
    'cudapy/test_atomics.py',
    'cudapy/test_array.py',
    'cudapy/test_sync.py',
    'cudapy/test_warp_ops.py',
  ],
  // Otherwise pytest would find the tests' own package `cuda` before NVIDIA's.
  pytest: ['--import-mode=importlib', '-o', 'consider_namespace_packages=true'],
  environment: toolkit,
};

/** Warp emits PTX where its toolkit is not newer than the driver. 1.17 has that of CUDA 12.9. */
const WARP: Suite = {
  name: 'warp',
  release: 'Warp 1.17.0',
  packages: [...PYTEST, 'warp-lang==1.17.0', 'numpy==2.4.6'],
  tests: 'warp/tests',
  directories: ['.', 'cuda', 'deterministic', 'fem', 'geometry', 'matrix', 'tile'],
  inCi: [
    'cuda/test_conditional_captures.py',
    'geometry/test_hash_grid.py',
    'test_atomic.py',
    'test_bf16.py',
    'test_overwrite.py',
    'test_sparse.py',
    'tile/test_tile_load_vectorized.py',
    'tile/test_tile_sort.py',
  ],
  // Its functions with parameters are not tests. Tests on the CPU say nothing about the GPU. Some
  // read Warp's warnings.
  pytest: ['-o', 'python_functions=NONE', '-k', 'not _cpu', '-Wdefault'],
  environment: () => ({}),
};

export const SUITES: readonly Suite[] = [CUPY, NUMBA, WARP];
