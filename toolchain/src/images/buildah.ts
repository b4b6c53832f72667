import { mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '../command.js';
import { ToolchainError } from '../errors.js';
import { cacheDirectory, REPOSITORY } from '../repository.js';

interface ImageBuild {
  /** As a pod would name it. */
  readonly name: string;
  /** Beneath images/: where its Dockerfile is. */
  readonly directory: string;
  readonly context: string;
  readonly base?: string;
}

/** Builds one image. Steps whose files did not change are taken from earlier builds. */
export async function buildImage({ name, directory, context, base }: ImageBuild): Promise<void> {
  const dockerfile = path.join(REPOSITORY, 'images', directory, 'Dockerfile');
  // Files get one date, so that the same content is the same layer.
  const options = [
    '--layers',
    '--timestamp',
    '0',
    '--isolation',
    'chroot',
    ...(base ? ['--build-arg', `BASE=${base}`] : []),
  ];
  await buildah(`image ${name} could not be built`, [
    'build',
    ...options,
    '-t',
    name,
    '-f',
    dockerfile,
    context,
  ]);
}

/**
 * Writes an image into an archive, as `ctr images import` and others read it. This form is not
 * compressed, which would take longest.
 */
export async function exportImage(name: string, archive: string): Promise<void> {
  mkdirSync(path.dirname(archive), { recursive: true });
  const unfinished = `${archive}.unfinished`;
  rmSync(unfinished, { force: true });
  await buildah(`image ${name} could not be exported`, [
    'push',
    '--quiet',
    '--disable-compression',
    name,
    `oci-archive:${unfinished}:${name}`,
  ]);
  renameSync(unfinished, archive);
}

/** Another name for an image. */
export async function tagImage(name: string, other: string): Promise<void> {
  await buildah(`image ${name} could not be named ${other}`, ['tag', name, other]);
}

/** Changes when the image does. */
export async function imageDigest(name: string): Promise<string | undefined> {
  const { status, output } = await run([
    'inspect',
    '--type',
    'image',
    '--format',
    '{{.FromImageDigest}}',
    name,
  ]);
  return status === 0 ? output.trim() : undefined;
}

async function buildah(failure: string, args: readonly string[]): Promise<void> {
  const { status, output } = await run(args);
  if (status !== 0)
    throw new ToolchainError(`The ${failure}: \`buildah ${args.join(' ')}\` failed:\n${output}`);
}

/** With a storage of our own, so that nobody's images are in the way, nor ours in theirs. */
function run(args: readonly string[]): ReturnType<typeof runCommand> {
  const storage = path.join(cacheDirectory(), 'buildah');
  return runCommand('buildah', [
    '--root',
    path.join(storage, 'root'),
    '--runroot',
    path.join(storage, 'run'),
    ...args,
  ]);
}
