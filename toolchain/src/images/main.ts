import path from 'node:path';
import { parseArgs } from 'node:util';
import { runMain } from '../errors.js';
import { KUBERNETES_VERSION } from '../kubernetes-tools.js';
import { BUILD_PREREQUISITES, ensurePrerequisites, IMAGE_PREREQUISITES } from '../prerequisites.js';
import { showProgress } from '../progress.js';
import { exportImages, pushImage } from './buildah.js';
import { chartImages } from './chart-images.js';
import { buildProductImages } from './product-images.js';
import { baseImage, upstreamImages } from './upstream-images.js';

const HELP = `Builds our images with buildah, and pushes or exports them.
  --push REGISTRY      pushes them to HOST or HOST/PATH, the chart's images.registry
  --archive FILE       writes all images of the chart, also those of other projects, to one file \
for \`ctr images import\`
  --kubernetes VERSION of the cluster, for the kube-scheduler in the archive (default: \
v${KUBERNETES_VERSION})
  --registry REGISTRY  in the names of our images (default: that of --push, or localhost)
  --tag TAG            of our images (default: the chart's version)
  --base IMAGE         to build ours on, with Node 20 and glibc (default: Debian's slim image of \
Node)`;

await runMain(async () => {
  const { values } = parseArgs({
    options: {
      push: { type: 'string' },
      archive: { type: 'string' },
      kubernetes: { type: 'string', default: KUBERNETES_VERSION },
      registry: { type: 'string' },
      tag: { type: 'string', default: chartImages().tag },
      base: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  await ensurePrerequisites([...BUILD_PREREQUISITES, ...IMAGE_PREREQUISITES]);
  const { push, archive, tag } = values;
  const registry = (values.registry ?? push ?? chartImages().registry).replace(/\/$/, '');
  const progress = showProgress('Images');
  const base = values.base ?? (await baseImage(progress));
  const images: string[] = Object.values(
    await buildProductImages({ registry, tag, base }, progress),
  );
  for (const image of push === undefined ? [] : images) {
    progress.note(`pushing ${image}`);
    await pushImage(image);
  }
  if (archive !== undefined) {
    images.push(...(await upstreamImages(values.kubernetes.replace(/^v/, ''), progress)));
    progress.note(`writing ${archive}`);
    await exportImages(images, path.resolve(archive));
  }
  progress.finish();
  console.log(images.join('\n'));
  return 0;
});
