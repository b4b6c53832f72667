import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { buildah, buildImage, imageDigest } from '@nvidia-virtual/toolchain/images/buildah';
import { type DebianRoot, debianArchive } from '@nvidia-virtual/toolchain/images/debian-root';
import { fetchZig, portableBuild } from '@nvidia-virtual/toolchain/portable-build';
import { showProgress } from '@nvidia-virtual/toolchain/progress';
import { REPOSITORY } from '../paths.js';

const SOURCES = path.join(REPOSITORY, 'test', 'images');
const WORK = path.join(REPOSITORY, 'build', 'test-images');
const CONTEXT = path.join(WORK, 'context');
const REGISTRY = 'localhost/nvidia-virtual-test';
/** As old as the library itself allows. */
const GLIBC = 'x86_64-linux-gnu.2.17';

export const TRIXIE_WITH_PYTHON: DebianRoot = {
  ...{ suite: 'trixie', name: 'debian-trixie-images-1' },
  packages: ['python3'],
};

/** By argument of the Containerfile. Ubuntu 20.04 and Debian 11 have the same C library. */
const BASES: Readonly<Record<string, DebianRoot>> = {
  BOOKWORM: {
    ...{ suite: 'bookworm', name: 'debian-bookworm-images-1' },
    packages: ['python3', 'gcc', 'libc6-dev', 'openssh-server', 'openssh-client', 'musl'],
  },
  BULLSEYE: {
    ...{ suite: 'bullseye', name: 'debian-bullseye-images-1', mergedUsr: true },
    packages: ['libstdc++6'],
  },
  TRIXIE: TRIXIE_WITH_PYTHON,
};

/** Directories of programs, by the additional arguments of the linker. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  probe: [],
  conda: ['-Wl,--disable-new-dtags', '-Wl,-rpath,$ORIGIN/../lib'],
  rpath: ['-Wl,--disable-new-dtags', '-Wl,-rpath,/usr/local/cuda/compat'],
  runpath: ['-Wl,--enable-new-dtags', '-Wl,-rpath,/usr/local/cuda/compat'],
};

/** Builds what the device plugin installs on a node for containers. @returns its directory */
export async function buildInstallation(): Promise<string> {
  const progress = showProgress('Libraries of containers');
  const libraries = ['interposer/libcuda.so.1', 'interposer/libnvidia-ml.so.1'];
  const secondName = 'interposer/loader/libcuda.so';
  const build = await portableBuild(progress, [...libraries, secondName]);
  progress.finish();
  const installation = path.join(WORK, 'installation');
  rmSync(installation, { recursive: true, force: true });
  for (const library of libraries)
    cpSync(path.join(build, library), path.join(installation, 'lib', path.basename(library)));
  const files = path.join(installation, 'container');
  cpSync(path.join(REPOSITORY, 'device-plugin', 'container'), files, { recursive: true });
  cpSync(path.join(build, secondName), path.join(files, 'libcuda.so'));
  return installation;
}

/** Builds the bases of all images, and the programs in them. */
export async function prepareImages(): Promise<void> {
  rmSync(CONTEXT, { recursive: true, force: true });
  mkdirSync(CONTEXT, { recursive: true });
  for (const base of Object.values(BASES)) await buildBase(base);
  await buildOther();
  for (const [directory, options] of Object.entries(PROGRAMS))
    await buildPrograms(directory, options);
  const musl = ['-target', 'x86_64-linux-musl', '-dynamic'];
  await compile('musl/probe', ['probe.c', ...musl]);
}

/** @returns the name of the image */
export async function buildStage(stage: string): Promise<string> {
  const name = `${REGISTRY}/${stage}`;
  const bases = Object.entries(BASES).flatMap(([argument, base]) => [
    '--build-arg',
    `${argument}=${nameOf(base)}`,
  ]);
  const file = path.join(SOURCES, 'Containerfile');
  await buildah(`image ${name} could not be built`, [
    ...['build', '--layers', '--timestamp', '0', '--isolation', 'chroot', '--target', stage],
    ...bases,
    ...['-t', name, '-f', file, CONTEXT],
  ]);
  return name;
}

function nameOf({ name }: DebianRoot): string {
  return `${REGISTRY}/${name}`;
}

async function buildBase(base: DebianRoot): Promise<void> {
  if ((await imageDigest(nameOf(base))) !== undefined) return;
  const context = path.join(WORK, base.name);
  mkdirSync(context, { recursive: true });
  cpSync(await debianArchive(base, (line) => console.log(line)), path.join(context, 'base.tar'));
  await buildImage({ name: nameOf(base), directory: 'test/root', context });
  rmSync(context, { recursive: true });
}

/** Libraries that stand in for NVIDIA's. */
async function buildOther(): Promise<void> {
  for (const name of ['libcuda.so.1', 'libnvidia-ml.so.1'])
    await compile(`other/${name}`, ['other.c', '-shared', '-target', GLIBC, `-Wl,-soname,${name}`]);
  symlinkSync('libcuda.so.1', path.join(CONTEXT, 'other', 'libcuda.so'));
}

async function buildPrograms(directory: string, options: readonly string[]): Promise<void> {
  const common = ['probe.c', '-target', GLIBC, ...options];
  await compile(`${directory}/probe`, [...common, '-ldl']);
  const library = path.join(CONTEXT, 'other', 'libcuda.so.1');
  await compile(`${directory}/linked`, [...common, '-DLINKED', '-ldl', library]);
  if (directory !== 'probe') return;
  for (const file of ['probe.c', 'probe.py'])
    cpSync(path.join(SOURCES, file), path.join(CONTEXT, directory, file));
}

async function compile(target: string, args: readonly string[]): Promise<void> {
  const output = path.join(CONTEXT, target);
  mkdirSync(path.dirname(output), { recursive: true });
  const command = ['cc', '-O1', '-fPIC', '-o', output, ...args];
  const result = await runCommand(await fetchZig(), command, { cwd: SOURCES });
  if (result.status !== 0 || !existsSync(output))
    throw new Error(`${target} could not be compiled:\n${result.output}`);
}
