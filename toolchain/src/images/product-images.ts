import { copyFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { cmakeBuild } from '../cmake.js';
import { buildKubernetesTools, KUBERNETES_VERSION, kubernetesTool } from '../kubernetes-tools.js';
import { portableBuild } from '../portable-build.js';
import type { Progress } from '../progress.js';
import { buildDirectory } from '../repository.js';
import { buildImage } from './buildah.js';
import { makeContext, type NativeBuilds } from './context.js';

const CONTEXTS = buildDirectory('images');
const ORDINARY_PARTS = [
  'native/closer/nvidia-virtual-closer',
  'native/launcher/nvidia-virtual-launcher',
  'native/simulator/libsimulator-cuda.so.1',
  'native/simulator/libsimulator-nvml.so.1',
];

export interface ProductImages {
  readonly node: string;
  readonly control: string;
  readonly kubeScheduler: string;
}

interface ProductImageOptions {
  /** Prefix of all names, with a slash: `localhost/`. */
  readonly registry?: string;
  readonly tag: string;
  /** Base image with Node and glibc. Default: that of the Dockerfiles. */
  readonly base?: string;
}

/** Builds the images of the chart from this tree. */
export async function buildProductImages(
  options: ProductImageOptions,
  progress: Progress,
): Promise<ProductImages> {
  const { registry = '', tag, base } = options;
  const images = {
    node: `${registry}nvidia-virtual/node:${tag}`,
    control: `${registry}nvidia-virtual/control:${tag}`,
    kubeScheduler: `${registry}nvidia-virtual/kube-scheduler:v${KUBERNETES_VERSION}`,
  };
  const builds = await buildNativeParts(progress);
  const build = async (name: 'node' | 'control') => {
    progress.note(`image ${images[name]}`);
    const context = await makeContext(name, CONTEXTS, builds);
    await buildImage({ name: images[name], directory: name, context, ...(base ? { base } : {}) });
  };
  await Promise.all([
    build('node'),
    build('control'),
    buildKubeScheduler(images.kubeScheduler, progress),
  ]);
  return images;
}

export async function buildNativeParts(progress: Progress): Promise<NativeBuilds> {
  const ordinary = await cmakeBuild({ preset: 'release', targets: ORDINARY_PARTS }, progress);
  return { ordinary, portable: await portableBuild(progress) };
}

async function buildKubeScheduler(name: string, progress: Progress): Promise<void> {
  await buildKubernetesTools(['kube-scheduler'], (line) => progress.note(line));
  progress.note(`image ${name}`);
  const context = path.join(CONTEXTS, 'kube-scheduler');
  mkdirSync(context, { recursive: true });
  copyFileSync(kubernetesTool('kube-scheduler'), path.join(context, 'kube-scheduler'));
  await buildImage({ name, directory: 'kube-scheduler', context });
}
