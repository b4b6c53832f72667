import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '../command.js';
import { ToolchainError } from '../errors.js';
import { buildah, imageDigest } from '../images/buildah.js';
import { CRIU_PACKAGES, CRIU_RELEASE } from '../images/criu.js';

interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
}

/** Packages of a Debian. */
export interface DebianPackages {
  /** Code name of its release, such as bookworm. */
  readonly release: string;
  readonly packages: readonly DebianPackage[];
}

/** Content of an image beside our own files. */
export interface ImageContents extends DebianPackages {
  /** Packages of CRIU. Undefined: the image has none. */
  readonly criu?: DebianPackages;
  /** Version of Node. */
  readonly node: string;
}

const CRIU = `opt/nvidia-virtual/criu/${CRIU_PACKAGES}`;

/**
 * Reads an image in buildah's store, as root. Undefined: there is no such image.
 * @throws ToolchainError if it is not based on Debian
 */
export async function imageContents(image: string): Promise<ImageContents | undefined> {
  if ((await imageDigest(image)) === undefined) return undefined;
  const from = ['from', '--quiet', '--pull-never', image];
  const container = (await buildah(`image ${image} cannot be opened`, from)).trim();
  try {
    const mount = ['mount', container];
    const root = (await buildah(`image ${image} cannot be mounted`, mount)).trim();
    const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
    const { status, output } = await runCommand('chroot', [root, 'node', '--version']);
    if (status !== 0) throw new ToolchainError(`Node of image ${image} does not start:\n${output}`);
    const release = /^VERSION_CODENAME=(\w+)$/m.exec(read('etc/os-release'))?.[1];
    if (release === undefined) throw new ToolchainError(`Image ${image} is not based on Debian.`);
    const node = output.trim().replace(/^v/, '');
    const packages = parseDpkgStatus(read('var/lib/dpkg/status'));
    if (!existsSync(path.join(root, CRIU))) return { release, packages, node };
    const criu = { release: CRIU_RELEASE, packages: parseDpkgStatus(read(CRIU)) };
    return { release, packages, node, criu };
  } finally {
    await buildah(`container ${container} could not be removed`, ['rm', container]);
  }
}

/** Reads /var/lib/dpkg/status. */
export function parseDpkgStatus(text: string): DebianPackage[] {
  return text.split('\n\n').flatMap((paragraph) => {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(paragraph)?.[1] ?? '';
    return field('Status') === 'install ok installed'
      ? [
          {
            name: field('Package'),
            version: field('Version'),
            architecture: field('Architecture'),
          },
        ]
      : [];
  });
}
