import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { mustRun, runCommand } from '../command.js';
import { ToolchainError } from '../errors.js';
import { buildDirectory, REPOSITORY } from '../repository.js';
import { imageDigest, tagImage } from './buildah.js';
import type { ProductImages } from './product-images.js';

/** The script that builds the images. */
const IMAGES = 'toolchain/src/images/main.ts';

/** A commit for which images are built. */
export interface Revision {
  /** Commit id. */
  readonly id: string;
  /** Directory with its files. */
  readonly directory: string;
}

/** Sentence that says why there is no revision. */
export interface NoRevision {
  readonly missing: string;
}

/**
 * A commit to upgrade from. @param from default: the previous one, which is HEAD if files have
 * changed, else its parent
 * @throws ToolchainError if CI has none and the clone is not shallow: a check that silently no
 * longer runs would look as if it passed
 */
export async function previousRevision(
  repository = REPOSITORY,
  env = process.env,
  from?: string,
): Promise<Revision | NoRevision> {
  const changed = (await mustRun('git', ['status', '--porcelain'], { cwd: repository })) !== '';
  const name = from ?? (changed ? 'HEAD' : 'HEAD^');
  const options = { cwd: repository };
  const { status, output } = await runCommand(
    'git',
    ['rev-parse', '--verify', '--quiet', '--short=12', name],
    options,
  );
  const id = output.trim();
  if (status === 0 && (await hasImages(id, repository)))
    return { id, directory: path.join(buildDirectory('revisions'), id) };
  if (status !== 0 && (await isShallow(repository)))
    return {
      missing: `The clone is shallow and has no ${name}: \`git fetch --unshallow\` brings it.`,
    };
  const missing =
    status === 0
      ? `Commit ${id} (${name}) cannot build images: it has no ${IMAGES}.`
      : `There is no commit ${name} in ${repository}.`;
  if (env['CI'])
    throw new ToolchainError(
      `${missing} CI upgrades from the images of the commit before, so check out a branch that ` +
        'has one.',
    );
  return { missing };
}

/** Returns its images, from an earlier build if possible. A build runs in the background. */
export async function revisionImages(
  { id, directory }: Revision,
  registry: string,
  base: string,
): Promise<string[]> {
  const names = ['node', 'control'].map((name) => `${registry}/nvidia-virtual/${name}:${id}`);
  await checkOut(id, directory);
  const known = await Promise.all(names.map(imageDigest));
  if (known.every((digest) => digest !== undefined)) return names;
  const inBackground = { cwd: directory, inBackground: true };
  await mustRun('npm', ['ci', '--no-audit', '--no-fund'], inBackground);
  const tsc = path.join('node_modules', 'typescript', 'bin', 'tsc');
  await mustRun(process.execPath, [tsc, '-b'], inBackground);
  const args = [
    path.join('toolchain', 'dist', 'images', 'main.js'),
    '--tag',
    id,
    '--base',
    base,
    '--registry',
    registry,
  ];
  await mustRun(process.execPath, args, inBackground);
  return names;
}

/** Tags the images for the run of the next commit. */
export async function keepImages({ node, control }: ProductImages): Promise<void> {
  if ((await mustRun('git', ['status', '--porcelain'])) !== '') return;
  const id = (await mustRun('git', ['rev-parse', '--short=12', 'HEAD'])).trim();
  for (const image of [node, control]) await tagImage(image, image.replace(/:[^:]*$/, `:${id}`));
}

async function isShallow(repository: string): Promise<boolean> {
  return (
    (await mustRun('git', ['rev-parse', '--is-shallow-repository'], { cwd: repository })).trim() ===
    'true'
  );
}

async function hasImages(id: string, repository: string): Promise<boolean> {
  return (
    (await runCommand('git', ['cat-file', '-e', `${id}:${IMAGES}`], { cwd: repository })).status ===
    0
  );
}

/** Extracts the files without a git worktree, so that the directory can simply be deleted. */
async function checkOut(id: string, directory: string): Promise<void> {
  if (existsSync(directory)) return;
  const unfinished = `${directory}.unfinished`;
  await mustRun('rm', ['-rf', unfinished]);
  mkdirSync(unfinished, { recursive: true });
  await mustRun('sh', ['-c', `git archive ${id} | tar -x -C '${unfinished}'`]);
  await mustRun('mv', [unfinished, directory]);
}
