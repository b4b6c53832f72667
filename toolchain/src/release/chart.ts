import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { runMain } from '../errors.js';
import { KUBERNETES_VERSION } from '../kubernetes-tools.js';
import { buildDirectory } from '../repository.js';
import { productVersion } from '../version.js';
import { productBill } from './bill-of-materials.js';
import { packageChart, pushChart } from './chart-package.js';
import { KEY_HELP, KEY_OPTIONS, signingKey } from './signing.js';

const HELP = `Packages the chart, and writes the SBOM of what it deploys beside it.
  --output DIRECTORY   default: build/chart
  --push REGISTRY      pushes the chart to HOST or HOST/PATH, as the OCI artifact nvidia-virtual
  --plain-http         the registry has no TLS
  --kubernetes VERSION of the cluster, for the kube-scheduler in the SBOM (default: \
v${KUBERNETES_VERSION})
${KEY_HELP}`;

await runMain(async () => {
  const { values } = parseArgs({
    options: {
      output: { type: 'string', default: buildDirectory('chart') },
      push: { type: 'string' },
      'plain-http': { type: 'boolean', default: false },
      kubernetes: { type: 'string', default: KUBERNETES_VERSION },
      ...KEY_OPTIONS,
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const output = path.resolve(values.output);
  const archive = await packageChart(output, signingKey(values));
  const bill = path.join(output, `nvidia-virtual-${productVersion()}.cdx.json`);
  writeFileSync(bill, await productBill(values.kubernetes.replace(/^v/, '')));
  const files = [archive, `${archive}.prov`, bill].filter((file) => existsSync(file));
  if (values.push !== undefined)
    files.push(await pushChart(archive, values.push, values['plain-http']));
  console.log(files.join('\n'));
  return 0;
});
