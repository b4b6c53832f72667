import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import path from 'node:path';
import { mustRun } from '@nvidia-virtual/toolchain/command';
import { cudaHome } from '@nvidia-virtual/toolchain/cuda-compiler';
import { fetchPythonPackages, fetchPythonSource } from '@nvidia-virtual/toolchain/python-packages';
import { cacheDirectory } from '@nvidia-virtual/toolchain/repository';
import { INTERPOSER, REPOSITORY } from '../paths.js';

const VERSION = '0.3.36';
export const LLAMA = `llama.cpp, llama-cpp-python ${VERSION}`;
const PACKAGES = [
  'diskcache==5.6.3',
  'jinja2==3.1.6',
  'markupsafe==3.0.4',
  'numpy==2.4.6',
  'typing-extensions==4.16.0',
];
/** By the names that Python loads, or else those that libraries need. */
const LIBRARIES = /^lib(llama|ggml)\.so$|^lib(ggml|ggml-.*|cublas)\.so\.(0|13)$|^test-backend-ops$/;
const CUBLAS = path.join(REPOSITORY, 'test', 'llama', 'cublas');
/** Only PTX, because the simulated GPU runs nothing else. The assembler would take most time. */
const OPTIONS = [
  '-DCMAKE_BUILD_TYPE=Release',
  '-DCMAKE_CUDA_ARCHITECTURES=80-virtual',
  '-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON',
  '-DCMAKE_INSTALL_RPATH=$ORIGIN',
  '-DBUILD_SHARED_LIBS=ON',
  '-DGGML_CUDA=ON',
  '-DGGML_CUDA_GRAPHS=ON',
  '-DGGML_CUDA_FORCE_MMQ=ON',
  // Kernels of FlashAttention would take longer to compile than all others together.
  '-DGGML_CUDA_FA=OFF',
  '-DGGML_CUDA_NCCL=OFF',
  '-DGGML_OPENMP=OFF',
  '-DGGML_CCACHE=OFF',
  '-DLLAMA_CURL=OFF',
  ...['COMMON', 'TESTS', 'TOOLS', 'EXAMPLES', 'SERVER'].map((part) => `-DLLAMA_BUILD_${part}=OFF`),
];

/**
 * Builds the Python binding of llama.cpp with CUDA, once, which takes some 10 minutes. build/llama
 * in the tree is a link to the result, with llama_cpp and the packages that it imports.
 */
export async function buildLlama(): Promise<string> {
  const built = path.join(cacheDirectory(), `llama-${VERSION}`);
  if (!existsSync(built)) {
    console.log(`Building llama.cpp (once, some 10 minutes) into ${built}`);
    await fetchPythonPackages(built, PACKAGES);
  }
  if (!existsSync(path.join(built, 'llama_cpp'))) await addLlama(built);
  const link = path.join(REPOSITORY, 'build', 'llama');
  rmSync(link, { force: true });
  symlinkSync(built, link);
  return built;
}

async function addLlama(built: string): Promise<void> {
  const source = path.join(cacheDirectory(), `llama-source-${VERSION}`);
  if (!existsSync(source)) await fetchPythonSource(source, `llama-cpp-python==${VERSION}`);
  const directory = mkdtempSync(`${built}.`);
  try {
    const llama = path.join(source, 'vendor', 'llama.cpp');
    await compile(llama, directory);
    const library = path.join(source, 'llama_cpp');
    cpSync(library, path.join(directory, 'llama_cpp'), { recursive: true });
    const libraries = path.join(directory, 'llama_cpp', 'lib');
    mkdirSync(libraries);
    const bin = path.join(directory, 'build', 'bin');
    for (const name of readdirSync(bin).filter((file) => LIBRARIES.test(file)))
      cpSync(path.join(bin, name), path.join(libraries, name), { dereference: true });
    const runtime = path.join(await cudaHome(), 'lib64', 'libcudart.so.13');
    cpSync(runtime, path.join(libraries, 'libcudart.so.13'), { dereference: true });
    renameSync(path.join(directory, 'llama_cpp'), path.join(built, 'llama_cpp'));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Leaves the libraries and test-backend-ops, ggml's own test of every operation, in build/bin. */
async function compile(llama: string, directory: string): Promise<void> {
  const home = await cudaHome((line) => console.log(line));
  const build = path.join(directory, 'build');
  const bin = path.join(build, 'bin');
  mkdirSync(bin, { recursive: true });
  const cublas = path.join(bin, 'libcublas.so.13');
  const name = ['-shared', '-fPIC', '-Wl,-soname,libcublas.so.13'];
  await mustRun('c++', [...name, path.join(CUBLAS, 'cublas.cpp'), '-o', cublas]);
  await mustRun('cmake', [
    ...['-G', 'Ninja', '-S', llama, '-B', build, ...OPTIONS, ...compilerLauncher()],
    `-DCMAKE_CUDA_COMPILER=${path.join(home, 'bin', 'nvcc')}`,
    `-DCUDAToolkit_ROOT=${home}`,
    `-DCMAKE_CUDA_FLAGS=-I${CUBLAS}`,
    `-DCUDA_cublas_LIBRARY=${cublas}`,
    `-DCUDA_cuda_driver_LIBRARY=${path.join(INTERPOSER, 'libcuda.so')}`,
  ]);
  await mustRun('cmake', ['--build', build, '-j', '2', '--target', 'llama']);
  const test = ['-std=c++17', '-O1', '-I', path.join(llama, 'ggml', 'include')];
  test.push(path.join(llama, 'tests', 'test-backend-ops.cpp'), '-L', bin);
  test.push('-lggml', '-lggml-base', '-lggml-cpu', '-lggml-cuda', '-lpthread');
  test.push('-Wl,-rpath,$ORIGIN', '-Wl,--allow-shlib-undefined');
  await mustRun('c++', [...test, '-o', path.join(bin, 'test-backend-ops')]);
}

/** CMake takes that of C and C++ from the environment, but not that of CUDA. */
function compilerLauncher(): string[] {
  const launcher = process.env['CMAKE_CXX_COMPILER_LAUNCHER'];
  return launcher ? [`-DCMAKE_CUDA_COMPILER_LAUNCHER=${launcher}`] : [];
}
