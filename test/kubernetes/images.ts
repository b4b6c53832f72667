import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { buildImage, exportImage, imageDigest } from '@nvidia-virtual/toolchain/images/buildah';
import { debianBase } from '@nvidia-virtual/toolchain/images/debian-base';
import { buildProductImages } from '@nvidia-virtual/toolchain/images/product-images';
import {
  keepImages,
  type NoRevision,
  previousRevision,
  type Revision,
  revisionImages,
} from '@nvidia-virtual/toolchain/images/revision';
import { fetchZig } from '@nvidia-virtual/toolchain/portable-build';
import { showProgress } from '@nvidia-virtual/toolchain/progress';
import { compileProgram } from '../cuda-program.js';
import { REPOSITORY } from '../paths.js';

/** The registry name of images that are imported and never pulled. */
export const REGISTRY = 'localhost';
export const PAUSE = `${REGISTRY}/pause:1`;
export const REDIS = `${REGISTRY}/redis:test`;
export const CUDA = `${REGISTRY}/cuda-programs:1`;
const CURRENT = '0.1.0';

const BASE = `${REGISTRY}/debian-with-node:1`;
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
  await buildBase((line) => progress.note(line));
  const [product] = await Promise.all([
    buildProductImages({ registry: `${REGISTRY}/`, tag: CURRENT, base: BASE }, progress),
    buildPause(),
    buildImage({
      name: REDIS,
      directory: 'test/redis',
      context: emptyContext('redis'),
      base: BASE,
    }),
    cudaContext().then((context) =>
      buildImage({ name: CUDA, directory: 'test/cuda', context, base: BASE }),
    ),
  ]);
  await keepImages(product);
  const archives = await Promise.all([PAUSE, REDIS, CUDA, ...Object.values(product)].map(archive));
  progress.finish();
  return archives;
}

/** Archives of the images of the previous commit, or the reason why there are none. */
export async function previousImages(): Promise<
  (Revision & { readonly archives: readonly string[] }) | NoRevision
> {
  const revision = await previousRevision();
  if ('missing' in revision) return revision;
  const names = await revisionImages(revision, REGISTRY, BASE);
  return { ...revision, archives: await Promise.all(names.map(archive)) };
}

async function buildBase(say: (line: string) => void): Promise<void> {
  if ((await imageDigest(BASE)) !== undefined) return;
  const context = emptyContext('base');
  copyFileSync(await debianBase(say), path.join(context, 'base.tar'));
  copyFileSync(process.execPath, path.join(context, 'node'));
  await buildImage({ name: BASE, directory: 'test/base', context });
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

/** The export takes long, so an archive of the same image is kept. */
async function archive(name: string): Promise<string> {
  const file = path.join(WORK, 'archives', `${name.replaceAll(/[/:]/g, '-')}.tar`);
  const digest = (await imageDigest(name)) ?? '';
  const known =
    existsSync(`${file}.digest`) && existsSync(file)
      ? readFileSync(`${file}.digest`, 'utf8')
      : undefined;
  if (digest === '' || known !== digest) {
    await exportImage(name, file);
    writeFileSync(`${file}.digest`, digest);
  }
  return file;
}

function emptyContext(name: string): string {
  const context = path.join(WORK, name);
  mkdirSync(context, { recursive: true });
  return context;
}
