import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { runMain, ToolchainError } from '../errors.js';
import { KUBERNETES_VERSION } from '../kubernetes-tools.js';
import { buildDirectory } from '../repository.js';
import { productVersion } from '../version.js';
import { writeArtifacts } from './artifacts.js';
import { changesOf, findObstacles, readTree } from './readiness.js';
import { KEY_HELP, KEY_OPTIONS, signingKey } from './signing.js';

const VERSION = productVersion();
const HELP = `Checks that this tree can be released, and writes all files of the release.
  --output DIRECTORY   default: build/releases/${VERSION}
  --rehearsal          also of a tree with changed files
  --url URL            under which the files will be published, for krew's manifest
  --kubernetes VERSION of the cluster, for the kube-scheduler in the archive of images (default: \
v${KUBERNETES_VERSION})
${KEY_HELP}`;
await runMain(async () => {
  const { values } = parseArgs({
    options: {
      output: { type: 'string', default: buildDirectory(path.join('releases', VERSION)) },
      rehearsal: { type: 'boolean', default: false },
      url: { type: 'string' },
      kubernetes: { type: 'string', default: KUBERNETES_VERSION },
      ...KEY_OPTIONS,
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const key = signingKey(values);
  const tree = await readTree(VERSION);
  const obstacles = findObstacles(values.rehearsal ? { ...tree, changes: '' } : tree);
  if (obstacles.length > 0)
    throw new ToolchainError(`${VERSION} cannot be released:\n- ${obstacles.join('\n- ')}`);
  const { kubernetes, url } = values;
  const output = path.resolve(values.output);
  const changes = changesOf(VERSION, tree.changelog);
  const sums = await writeArtifacts({ output, kubernetes, changes, url, key });
  for (const line of readFileSync(sums, 'utf8').trimEnd().split('\n')) {
    const file = path.join(output, line.replace(/^\w+ {2}/, ''));
    console.log(`${(statSync(file).size / 1e6).toFixed(1)} MB  ${file}`);
  }
  return 0;
});
