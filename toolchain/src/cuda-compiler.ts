import { existsSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from './command.js';
import { fetchPythonPackages } from './python-packages.js';
import { cacheDirectory } from './repository.js';

/** CUDA release of the packages. Each release has its own directory in the cache. */
const CUDA_RELEASE = '13.0.2';
const PACKAGES = [
  'nvidia-cuda-nvcc==13.0.88',
  'nvidia-cuda-runtime==13.0.96',
  'nvidia-cuda-crt==13.0.88',
  'nvidia-cuda-cccl==13.0.85',
  'nvidia-nvvm==13.0.88',
];

export interface CudaCompiler {
  readonly nvcc: string;
  /** Directory of cuda.h. */
  readonly include: string;
  /** Directory of libcudart.so. */
  readonly library: string;
}

/**
 * Returns the installed CUDA toolkit, or else NVIDIA's compiler packages, which are downloaded
 * once.
 */
export async function cudaCompiler(say: (line: string) => void = () => {}): Promise<CudaCompiler> {
  return (await installedToolkit('/usr/local/cuda')) ?? fetchedCompiler(say);
}

/**
 * CUDA_HOME for nvcc and the CUDA samples: from the environment, or else of cudaCompiler().
 */
export async function cudaHome(say: (line: string) => void = () => {}): Promise<string> {
  return process.env['CUDA_HOME'] ?? path.dirname(path.dirname((await cudaCompiler(say)).nvcc));
}

/**
 * NVIDIA's compiler packages of exactly this release from the cache, independent of installed
 * toolkits.
 */
export async function fetchedCompiler(
  say: (line: string) => void = () => {},
): Promise<CudaCompiler> {
  const directory = path.join(cacheDirectory(), `cuda-${CUDA_RELEASE}`);
  if (!existsSync(directory)) {
    say(`Fetching NVIDIA's CUDA compiler ${CUDA_RELEASE} (some 100 MB, once) into ${directory}`);
    await fetchPythonPackages(directory, PACKAGES, (tree) =>
      linkLikeToolkit(path.join(tree, 'nvidia', 'cu13')),
    );
  }
  return layoutOf(path.join(directory, 'nvidia', 'cu13'));
}

export async function installedToolkit(root: string): Promise<CudaCompiler | undefined> {
  const compiler = layoutOf(root);
  if (!existsSync(compiler.nvcc)) return undefined;
  const release = /release (\d+)\./.exec(
    (await runCommand(compiler.nvcc, ['--version'])).output,
  )?.[1];
  return Number(release) >= 13 ? compiler : undefined;
}

function layoutOf(root: string): CudaCompiler {
  return {
    nvcc: path.join(root, 'bin', 'nvcc'),
    include: path.join(root, 'include'),
    library: path.join(root, 'lib64'),
  };
}

/**
 * Creates two links that nvcc and the linker need. The packages lack them, unlike the toolkit.
 */
function linkLikeToolkit(root: string): void {
  symlinkSync('lib', path.join(root, 'lib64'));
  symlinkSync('libcudart.so.13', path.join(root, 'lib', 'libcudart.so'));
}
