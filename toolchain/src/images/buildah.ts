import { mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { type CommandOptions, type CommandResult, mustRun, runCommand } from '../command.js';
import { ToolchainError } from '../errors.js';
import { cacheDirectory, REPOSITORY } from '../repository.js';

interface ImageBuild {
  /** Image name as used by pods. */
  readonly name: string;
  /** Directory of its Dockerfile, relative to images/. */
  readonly directory: string;
  readonly context: string;
  readonly base?: string;
}

/** Builds one image. Steps with unchanged files come from the build cache. */
export async function buildImage({ name, directory, context, base }: ImageBuild): Promise<void> {
  const dockerfile = path.join(REPOSITORY, 'images', directory, 'Dockerfile');
  // A fixed file date makes layers reproducible.
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
 * Writes images to one archive, in which they share layers, for `ctr images import` and others.
 * @param isCompressed false: twice as large, in a fraction of the time
 */
export async function exportImages(
  names: readonly string[],
  archive: string,
  isCompressed = true,
): Promise<void> {
  mkdirSync(path.dirname(archive), { recursive: true });
  const [layout, unfinished] = [`${archive}.layout`, `${archive}.unfinished`];
  rmSync(layout, { recursive: true, force: true });
  try {
    for (const name of names)
      await buildah(`image ${name} could not be exported`, [
        'push',
        '--quiet',
        ...(isCompressed ? [] : ['--disable-compression']),
        name,
        `oci:${layout}:${name}`,
      ]);
    const failure = `${archive} could not be written`;
    await mustRun('tar', ['-cf', unfinished, '-C', layout, '.'], { failure });
    renameSync(unfinished, archive);
  } finally {
    for (const file of [layout, unfinished]) rmSync(file, { recursive: true, force: true });
  }
}

/** Pushes an image to the registry in its name. `buildah login` grants access. */
export async function pushImage(name: string): Promise<void> {
  await buildah(`image ${name} could not be pushed`, ['push', '--quiet', name, `docker://${name}`]);
}

/** Fetches the current image of this name. @returns whether its registry could be reached */
export async function fetchImage(name: string): Promise<boolean> {
  const { status } = await run(['pull', '--quiet', '--policy', 'always', '--retry', '0', name]);
  return status === 0;
}

/** Adds a name to an image. */
export async function tagImage(name: string, other: string): Promise<void> {
  await buildah(`image ${name} could not be named ${other}`, ['tag', name, other]);
}

/** Digest of an image. Undefined: there is no such image. */
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

/**
 * Runs a command of buildah on the same storage. @returns its output @throws ToolchainError
 */
export async function buildah(
  failure: string,
  args: readonly string[],
  options: Pick<CommandOptions, 'inBackground'> = {},
): Promise<string> {
  const { status, output } = await run(args, options);
  if (status !== 0)
    throw new ToolchainError(`The ${failure}: \`buildah ${args.join(' ')}\` failed:\n${output}`);
  return output;
}

/** Runs buildah with separate storage, so that it shares no images with the user. */
function run(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const storage = path.join(cacheDirectory(), 'buildah');
  const places = ['--root', path.join(storage, 'root'), '--runroot', path.join(storage, 'run')];
  return runCommand('buildah', [...places, ...args], options);
}
