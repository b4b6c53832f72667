/** A release of the shared CUDA runtime, as a Python package. */
export interface Release {
  readonly name: string;
  readonly requirement: string;
  /** Path of the library in the package. */
  readonly library: string;
}

/** A run of a release on a driver, and the result of its first call. */
export interface Case {
  readonly release: Release;
  /** CUDA version of the simulated driver. */
  readonly driver: string;
  readonly expected: string;
}

const CUDA_11 = 'nvidia/cuda_runtime/lib/libcudart.so.11.0';
const CUDA_12 = 'nvidia/cuda_runtime/lib/libcudart.so.12';
const CUDA_13 = 'nvidia/cu13/lib/libcudart.so.13';

const RELEASES: readonly Release[] = [
  { name: '11.8', requirement: 'nvidia-cuda-runtime-cu11==11.8.89', library: CUDA_11 },
  { name: '12.1', requirement: 'nvidia-cuda-runtime-cu12==12.1.105', library: CUDA_12 },
  { name: '12.4', requirement: 'nvidia-cuda-runtime-cu12==12.4.127', library: CUDA_12 },
  { name: '12.9', requirement: 'nvidia-cuda-runtime-cu12==12.9.79', library: CUDA_12 },
  { name: '13.0', requirement: 'nvidia-cuda-runtime==13.0.96', library: CUDA_13 },
  { name: '13.5', requirement: 'nvidia-cuda-runtime==13.5.37', library: CUDA_13 },
];

const NEWEST_DRIVER = '13.0';
const OLDEST_DRIVER = '12.4';

/**
 * Within a major version, an older driver suffices. A runtime of a newer major version refuses the
 * driver itself.
 */
export const CASES: readonly Case[] = [NEWEST_DRIVER, OLDEST_DRIVER].flatMap((driver) =>
  RELEASES.map((release) => ({
    release,
    driver,
    expected: major(release.name) > major(driver) ? 'cudaErrorInsufficientDriver' : 'cudaSuccess',
  })),
);

function major(version: string): number {
  return Number(version.split('.')[0]);
}
