import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { runVisibly } from '../command.js';
import { ToolchainError } from '../errors.js';
import { buildDirectory, REPOSITORY } from '../repository.js';
import { productVersion } from '../version.js';
import { writeChecksums } from './checksums.js';
import { keyFlags, type SigningKey, signFile } from './signing.js';

export interface ReleaseOptions {
  /** Directory for the files. It is emptied. */
  readonly output: string;
  /** Version of the cluster, for kube-scheduler. */
  readonly kubernetes: string;
  /** Section of CHANGELOG.md. */
  readonly changes: string;
  /** URL under which the files will be published. Undefined: the default of krew's manifest. */
  readonly url: string | undefined;
  /** Undefined: nothing is signed. */
  readonly key: SigningKey | undefined;
}

const VERSION = productVersion();
/** Files of build/kubectl-plugin that are published. */
const PLUGIN = [
  'gpu-usage.yaml',
  `gpu-usage-v${VERSION}-linux-amd64.tar.gz`,
  `gpu-usage-v${VERSION}-node.tar.gz`,
];

/**
 * Writes all files of a release. @param makeImages writes the archive of images; it takes long, so
 * tests have another one. @returns path of SHA256SUMS
 */
export async function writeArtifacts(
  { output, kubernetes, changes, url, key }: ReleaseOptions,
  makeImages: (archive: string, kubernetes: string) => Promise<void> = imagesByBuildah,
): Promise<string> {
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  await makeImages(path.join(output, `nvidia-virtual-images-${VERSION}.tar`), kubernetes);
  await script('kubectl-plugin.js', url === undefined ? [] : [url]);
  for (const file of PLUGIN)
    copyFileSync(path.join(buildDirectory('kubectl-plugin'), file), path.join(output, file));
  // After the images, so that the SBOM lists their packages.
  const chart = ['--output', output, '--kubernetes', kubernetes, ...(key ? keyFlags(key) : [])];
  await script('release/chart.js', chart);
  writeFileSync(path.join(output, `CHANGES-${VERSION}.md`), `${changes}\n`);
  const sums = await writeChecksums(output);
  if (key !== undefined) await signFile(sums, key);
  return sums;
}

function imagesByBuildah(archive: string, kubernetes: string): Promise<void> {
  return script('images/main.js', ['--archive', archive, '--kubernetes', kubernetes]);
}

/** Runs another command of this package, as a user does. */
async function script(name: string, args: readonly string[]): Promise<void> {
  const file = path.join(REPOSITORY, 'toolchain', 'dist', name);
  if ((await runVisibly(process.execPath, [file, ...args])) !== 0)
    throw new ToolchainError(`\`node toolchain/dist/${name} ${args.join(' ')}\` failed.`);
}
