import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { ToolchainError } from '../errors.js';
import { buildKubernetesTools, KUBERNETES_VERSION, kubernetesTool } from '../kubernetes-tools.js';
import type { Progress } from '../progress.js';
import { buildDirectory } from '../repository.js';
import { buildImage, fetchImage, imageDigest } from './buildah.js';
import { chartImages } from './chart-images.js';
import { type DebianRoot, debianArchive } from './debian-root.js';

/** Image on which ours are built. */
const BASE = 'docker.io/library/node:20-bookworm-slim';
/** Substitute for it. */
const DEBIAN_WITH_NODE = 'localhost/debian-with-node:2';
const NODE_ROOT: DebianRoot = {
  ...{ suite: 'bookworm', name: 'debian-bookworm-2' },
  packages: ['libstdc++6'],
};
/** Debian's oldest release with Valkey. */
const VALKEY_ROOT: DebianRoot = {
  ...{ suite: 'trixie', name: 'debian-trixie-valkey-1' },
  packages: ['valkey-server'],
};

/** Fetches the base image of our own. A substitute is built if its registry is out of reach. */
export async function baseImage(progress: Progress): Promise<string> {
  if (await fetchImage(BASE)) return BASE;
  progress.note(`${BASE} cannot be fetched; ours are built on Debian's packages and this Node`);
  return debianWithNode(progress);
}

/** Debian with the Node that runs this program. */
export async function debianWithNode(progress: Progress): Promise<string> {
  if ((await imageDigest(DEBIAN_WITH_NODE)) !== undefined) return DEBIAN_WITH_NODE;
  const context = await contextWith('node', NODE_ROOT, progress);
  copyFileSync(process.execPath, path.join(context, 'node'));
  await buildImage({ name: DEBIAN_WITH_NODE, directory: 'substitutes/node', context });
  return DEBIAN_WITH_NODE;
}

/**
 * Fetches the chart's images of other projects. One whose registry is out of reach is built under
 * the same name.
 * @param kubernetes version of the cluster, such as `1.36.3`
 * @returns their names
 */
export async function upstreamImages(kubernetes: string, progress: Progress): Promise<string[]> {
  const { kubeScheduler, redis } = chartImages();
  const scheduler = `${kubeScheduler}:v${kubernetes}`;
  if (!(await fetchImage(scheduler))) await buildKubeScheduler(scheduler, kubernetes, progress);
  if (!(await fetchImage(redis))) await buildValkey(redis, progress);
  return [scheduler, redis];
}

async function buildKubeScheduler(
  name: string,
  kubernetes: string,
  progress: Progress,
): Promise<void> {
  if (kubernetes !== KUBERNETES_VERSION)
    throw new ToolchainError(
      `${name} cannot be fetched, and only version ${KUBERNETES_VERSION} can be built here. ` +
        `Use --kubernetes v${KUBERNETES_VERSION}, if your cluster has the same or the next minor ` +
        'version, and set images.kubeSchedulerTag to it.',
    );
  progress.note(`${name} cannot be fetched; built from source`);
  await buildKubernetesTools(['kube-scheduler'], (line) => progress.note(line));
  const context = emptyContext('kube-scheduler');
  copyFileSync(kubernetesTool('kube-scheduler'), path.join(context, 'kube-scheduler'));
  await buildImage({ name, directory: 'substitutes/kube-scheduler', context });
}

async function buildValkey(name: string, progress: Progress): Promise<void> {
  progress.note(`${name} cannot be fetched; built from Debian's package, whose version may differ`);
  const context = await contextWith('valkey', VALKEY_ROOT, progress);
  await buildImage({ name, directory: 'substitutes/valkey', context });
}

async function contextWith(name: string, root: DebianRoot, progress: Progress): Promise<string> {
  const context = emptyContext(name);
  const archive = await debianArchive(root, (line) => progress.note(line));
  copyFileSync(archive, path.join(context, 'base.tar'));
  return context;
}

function emptyContext(name: string): string {
  const context = path.join(buildDirectory('images'), 'substitutes', name);
  rmSync(context, { recursive: true, force: true });
  mkdirSync(context, { recursive: true });
  return context;
}
