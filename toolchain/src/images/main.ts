import path from 'node:path';
import { parseArgs } from 'node:util';
import { runMain } from '../errors.js';
import { showProgress } from '../progress.js';
import { REPOSITORY } from '../repository.js';
import { exportImage } from './buildah.js';
import { buildProductImages } from './product-images.js';

const HELP = `Builds the images of the chart with buildah.
  --tag TAG          of nvidia-virtual/node and nvidia-virtual/control (default: 0.1.0)
  --base IMAGE       to build those two on, with Node 20 and glibc (default: what the Dockerfiles \
say)
  --registry NAME    before every name, for example a host and a path
  --archives DIR     also write each as an archive, for \`ctr images import\``;

await runMain(async () => {
  const { values } = parseArgs({
    options: {
      tag: { type: 'string', default: '0.1.0' },
      base: { type: 'string' },
      registry: { type: 'string' },
      archives: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const { tag, base, registry, archives } = values;
  const progress = showProgress('Images');
  const options = {
    tag,
    ...(base ? { base } : {}),
    ...(registry ? { registry: `${registry}/` } : {}),
  };
  const images = Object.values(await buildProductImages(options, progress));
  for (const image of images) if (archives) await exportImage(image, archiveOf(image, archives));
  progress.finish();
  console.log(images.join('\n'));
  return 0;
});

function archiveOf(image: string, directory: string): string {
  return path.resolve(REPOSITORY, directory, `${path.basename(image).replace(':', '-')}.tar`);
}
