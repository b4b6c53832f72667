import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { buildImage, exportImages, imageDigest } from '@nvidia-virtual/toolchain/images/buildah';
import { chartImages } from '@nvidia-virtual/toolchain/images/chart-images';
import { debianArchive } from '@nvidia-virtual/toolchain/images/debian-root';
import { buildProductImages } from '@nvidia-virtual/toolchain/images/product-images';
import {
  keepImages,
  type NoRevision,
  previousRevision,
  type Revision,
  revisionImages,
} from '@nvidia-virtual/toolchain/images/revision';
import { debianWithNode, upstreamImages } from '@nvidia-virtual/toolchain/images/upstream-images';
import { KUBERNETES_VERSION } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { fetchZig } from '@nvidia-virtual/toolchain/portable-build';
import { showProgress } from '@nvidia-virtual/toolchain/progress';
import { compileProgram } from '../cuda-program.js';
import { TRIXIE_WITH_PYTHON } from '../images/build.js';
import { REPOSITORY } from '../paths.js';

export const PAUSE = 'localhost/pause:1';
export const CUDA = 'localhost/cuda-programs:1';

const WORK = path.join(REPOSITORY, 'build', 'images');

/** Programs of pods, as `test/AREA/NAME.cu`. */
const PROGRAMS = [
  ['conformance/programs', 'vector_add'],
  ['conformance/programs', 'matrix'],
  ['conformance/programs', 'properties'],
  ['kubernetes', 'tenant'],
] as const;

/** Builds all images of the cluster. @returns archives for containerd; unchanged ones are reused */
export async function buildImages(): Promise<string[]> {
  const progress = showProgress('Images');
  const base = await debianWithNode(progress);
  const [product, upstream] = await Promise.all([
    buildProductImages({ ...chartImages(), base }, progress),
    upstreamImages(KUBERNETES_VERSION, progress),
    buildPause(),
    cudaContext().then((context) =>
      buildImage({ name: CUDA, directory: 'test/cuda', context, base }),
    ),
  ]);
  await keepImages(product);
  const archives = [
    await archive('chart', [...Object.values(product), ...upstream]),
    await archive('programs', [PAUSE, CUDA]),
  ];
  progress.finish();
  return archives;
}

/**
 * Archive of the images of a commit, or the reason why there is none.
 * @param from default: the previous one
 */
export async function previousImages(
  from?: string,
): Promise<(Revision & { readonly archive: string }) | NoRevision> {
  const revision = await previousRevision(REPOSITORY, process.env, from);
  if ('missing' in revision) return revision;
  const base = await debianWithNode(showProgress('Images of the previous commit'));
  const names = await revisionImages(revision, chartImages().registry, base);
  return { ...revision, archive: await archive('previous', names) };
}

/** Stands in for the image of Python's project. @returns its name */
export async function buildPython(): Promise<string> {
  const [name, context] = ['localhost/python:3.13-slim', emptyContext('python')];
  copyFileSync(await debianArchive(TRIXIE_WITH_PYTHON), path.join(context, 'base.tar'));
  await buildImage({ name, directory: 'test/root', context });
  return name;
}

async function buildPause(): Promise<void> {
  const context = emptyContext('pause');
  const source = path.join(REPOSITORY, 'images', 'test', 'pause', 'pause.c');
  const args = [
    'cc',
    '-target',
    'x86_64-linux-musl',
    '-static',
    '-Os',
    '-s',
    source,
    '-o',
    path.join(context, 'pause'),
  ];
  const { status, output } = await runCommand(await fetchZig(), args);
  if (status !== 0)
    throw new Error(`the program of the pods' sandbox could not be compiled:\n${output}`);
  await buildImage({ name: PAUSE, directory: 'test/pause', context });
}

async function cudaContext(): Promise<string> {
  const context = emptyContext('cuda');
  mkdirSync(path.join(context, 'programs'), { recursive: true });
  for (const [area, name] of PROGRAMS)
    copyFileSync(await compileProgram(area, name), path.join(context, 'programs', name));
  await compileOther(path.join(context, 'compat'));
  return context;
}

/** A libcuda.so.1 of the image, which must not be loaded. */
async function compileOther(directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true });
  const source = path.join(REPOSITORY, 'test', 'images', 'other.c');
  const target = ['-target', 'x86_64-linux-gnu.2.17', '-Wl,-soname,libcuda.so.1'];
  const library = path.join(directory, 'libcuda.so.1');
  const args = ['cc', '-shared', '-fPIC', '-O1', ...target, source, '-o', library];
  const { status, output } = await runCommand(await fetchZig(), args);
  if (status !== 0) throw new Error(`the library of the image could not be compiled:\n${output}`);
}

/** The export takes long, so an archive of the same images is kept. */
async function archive(title: string, names: readonly string[]): Promise<string> {
  const file = path.join(WORK, 'archives', `${title}.tar`);
  const digests = JSON.stringify(
    await Promise.all(names.map(async (name) => [name, await imageDigest(name)])),
  );
  const known =
    existsSync(`${file}.digests`) && existsSync(file)
      ? readFileSync(`${file}.digests`, 'utf8')
      : undefined;
  if (known !== digests) {
    await exportImages(names, file, false);
    writeFileSync(`${file}.digests`, digests);
  }
  return file;
}

function emptyContext(name: string): string {
  const context = path.join(WORK, name);
  mkdirSync(context, { recursive: true });
  return context;
}
