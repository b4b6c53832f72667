import { runCommand } from '@nvidia-virtual/toolchain/command';
import { chartImages } from '@nvidia-virtual/toolchain/images/chart-images';
import { KUBERNETES_VERSION } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { TestRegistry } from '../cluster/registry.js';
import type { TestNode } from '../cluster/test-node.js';
import { buildPython } from '../images.js';
import { readCommands } from '../page-commands.js';
import { userTools } from './product.js';
import type { NodeScenario } from './scene.js';

const LABEL = 'nvidia-virtual/node';
const PYTHON = 'docker.io/library/python:3.13-slim';
/** What the commands print if they work. */
const PRINTED = [
  /"name":"Simulated GPU"/, // helm test
  /nvidia-virtual\/gpu: +10/,
  /anna +\w+ +7 /,
  /bert +\w+ +3 /,
  /\d{2,} steps in 30 seconds/,
  /requests\.nvidia-virtual\/gpu +0 +20/,
];

export const quickStart: NodeScenario = {
  name: 'quick-start',
  about: 'the commands of docs/quick-start.md as they stand, with mirrors of public registries',
  installs: true,
  async play({ cluster, tally }) {
    const registry = await publish(cluster);
    const node = cluster.nodeName;
    const values = { REGISTRY: `${registry.host}/gpu`, NODE: node, BACKEND: 'simulated' };
    const { variables, blocks } = readCommands('quick-start.md');
    const known = variables.join() === Object.keys(values).join();
    tally.judge('the page asks for values that the test has', known ? [] : [variables.join()]);
    await cluster.kubectl('label', 'node', node, `${LABEL}-`);

    const { status, output } = await runCommand('bash', ['-c', `set -ex\n${blocks.join('\n')}`], {
      env: { ...process.env, ...userTools(cluster), ...registry.environment(), ...values },
    });
    const missing = PRINTED.filter((pattern) => !pattern.test(output)).map(
      (pattern) => `${pattern} was not printed`,
    );
    const problems = [...(status === 0 ? [] : [`status ${status}`]), ...missing];
    tally.judge('its commands work', problems.length > 0 ? [...problems, output] : []);
    await cluster.kubectl('label', 'node', node, `${LABEL}=true`, '--overwrite');
    await cluster.tryKubectl(['delete', 'namespace', 'team-vision', '--wait=false']);
  },
};

/** Images of other projects are pulled as on a fresh node, from mirrors of their registries. */
async function publish(cluster: TestNode): Promise<TestRegistry> {
  const { kubeScheduler, redis } = chartImages();
  const images = [`${kubeScheduler}:v${KUBERNETES_VERSION}`, redis];
  await cluster.forget(images);
  const registry = await TestRegistry.start(cluster.plane);
  for (const image of images) await registry.mirror(image, image);
  await registry.mirror(await buildPython(), PYTHON);
  return registry;
}
