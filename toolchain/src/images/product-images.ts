import { cmakeBuild } from '../cmake.js';
import { ORDINARY_PARTS } from '../native-parts.js';
import { portableBuild } from '../portable-build.js';
import type { Progress } from '../progress.js';
import { buildDirectory } from '../repository.js';
import { buildImage } from './buildah.js';
import { chartImages } from './chart-images.js';
import { makeContext, type NativeBuilds } from './context.js';

const CONTEXTS = buildDirectory('images');

export interface ProductImages {
  readonly node: string;
  readonly control: string;
}

interface ProductImageOptions {
  readonly registry: string;
  readonly tag: string;
  /** Base image with Node and glibc. */
  readonly base: string;
}

/** Builds our own images from this tree. */
export async function buildProductImages(
  { registry, tag, base }: ProductImageOptions,
  progress: Progress,
): Promise<ProductImages> {
  const chart = chartImages();
  const images = {
    node: `${registry}/${chart.node}:${tag}`,
    control: `${registry}/${chart.control}:${tag}`,
  };
  const builds = await buildNativeParts(progress);
  const build = async (name: 'node' | 'control') => {
    progress.note(`image ${images[name]}`);
    const context = await makeContext(name, CONTEXTS, builds);
    await buildImage({ name: images[name], directory: name, context, base });
  };
  await Promise.all([build('node'), build('control')]);
  return images;
}

export async function buildNativeParts(progress: Progress): Promise<NativeBuilds> {
  const ordinary = await cmakeBuild(
    { preset: 'release', targets: Object.keys(ORDINARY_PARTS) },
    progress,
  );
  return { ordinary, portable: await portableBuild(progress) };
}
