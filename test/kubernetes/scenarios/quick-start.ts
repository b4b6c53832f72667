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
  prepare: registryOf,
  async play({ cluster, tally }) {
    const registry = await registryOf(cluster);
    await cluster.forget(otherImages());
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
function otherImages(): string[] {
  const { kubeScheduler, redis } = chartImages();
  return [`${kubeScheduler}:v${KUBERNETES_VERSION}`, redis];
}

const registries = new WeakMap<TestNode, Promise<TestRegistry>>();

function registryOf(cluster: TestNode): Promise<TestRegistry> {
  const registry = registries.get(cluster) ?? publish(cluster);
  registries.set(cluster, registry);
  return registry;
}

async function publish(cluster: TestNode): Promise<TestRegistry> {
  const registry = await TestRegistry.start(cluster.plane);
  for (const image of otherImages()) await registry.mirror(image, image);
  await registry.mirror(await buildPython(), PYTHON);
  // It then has most layers, so that the page's command compresses little while others wait.
  const { registry: ours, node, control, tag } = chartImages();
  for (const name of [node, control])
    await registry.receive(`${ours}/${name}:${tag}`, `before/${name}:${tag}`);
  return registry;
}
