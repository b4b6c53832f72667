import path from 'node:path';

/** Default search directories of the loader in Debian and Red Hat based images. */
export const LIBRARY_DIRECTORIES = ['/usr/lib/x86_64-linux-gnu', '/usr/lib64'] as const;

/** Libraries by the name that programs load, and their files in the directory of a version. */
const LIBRARIES = {
  'libcuda.so.1': 'lib/libcuda.so.1',
  // The name that the linker wants, and that Taichi, Dr.Jit and hashcat load.
  'libcuda.so': 'lib/libcuda.so.1',
  'libnvidia-ml.so.1': 'lib/libnvidia-ml.so.1',
  'libnvidia-ml.so': 'lib/libnvidia-ml.so.1',
} as const;

/** Variables of the container, for login shells. */
const LOGIN_FILES = { '/etc/profile.d/nvidia-virtual.sh': 'container/profile.sh' } as const;

/** JAX uses CUDA only if a path of NVIDIA's devices exists. This one is a text. */
const DEVICE_FILES = { '/dev/nvidiactl': 'container/nvidiactl' } as const;

/**
 * Makes the loader use our libraries before it searches, so that LD_LIBRARY_PATH, an RPATH or the
 * loader's cache of the image cannot lead to another one.
 */
const PRELOAD_FILES = {
  '/etc/ld.so.preload': 'container/ld.so.preload',
  '/usr/lib/nvidia-virtual/libcuda.so': 'container/libcuda.so',
} as const;

/**
 * Files that are mounted into each container: path in the container, and path in the directory of
 * the version.
 */
export function containerFiles({ preload }: { readonly preload: boolean }): [string, string][] {
  const libraries = LIBRARY_DIRECTORIES.flatMap((directory) =>
    Object.entries(LIBRARIES).map(([name, file]): [string, string] => [
      path.join(directory, name),
      file,
    ]),
  );
  return [
    ...libraries,
    ...Object.entries(LOGIN_FILES),
    ...Object.entries(DEVICE_FILES),
    ...(preload ? Object.entries(PRELOAD_FILES) : []),
  ];
}
