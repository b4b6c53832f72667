import { parseArgs } from 'node:util';
import { buildKubernetesTools, NODE_TOOLS } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { ensurePrerequisites, KUBERNETES_PREREQUISITES, TEST_PREREQUISITES } from '@nvidia-virtual/toolchain/prerequisites';
import { Tally } from '../tally.js';
import { Cluster } from './cluster/cluster.js';
import { type ContainerRuntime, RUNTIMES } from './cluster/container-runtime.js';
import { buildImages } from './images.js';
import { containers } from './scenarios/containers.js';
import { full } from './scenarios/full.js';
import { makeGpuUsage } from './scenarios/gpu-usage.js';
import { installation } from './scenarios/installation.js';
import { kubeletRestarts } from './scenarios/kubelet-restarts.js';
import { reboot } from './scenarios/reboot.js';
import { restarts } from './scenarios/restarts.js';
import type { Scenario } from './scenarios/scene.js';
import { sharing } from './scenarios/sharing.js';
import { stolenSocket } from './scenarios/stolen-socket.js';
import { storm } from './scenarios/storm.js';
import { Tenants } from './scenarios/tenants.js';
import { uninstallation } from './scenarios/uninstallation.js';
import { upgrading } from './scenarios/upgrading.js';
import { usage } from './scenarios/usage.js';
import { userNamespaces } from './scenarios/user-namespaces.js';
import { webhook } from './scenarios/webhook.js';

/** In this order, on one cluster: the first makes the product, which all others but the last need. */
const SCENARIOS: readonly Scenario[] = [
  ...[installation, sharing, usage, full, containers, stolenSocket, userNamespaces, webhook],
  ...[restarts, kubeletRestarts, storm, reboot, uninstallation, upgrading],
];
/** What the other container runtime could do differently. */
const OF_THE_RUNTIME = ['installation', 'sharing', 'stolen-socket', 'user-namespaces'];

const HELP = `The product in a real Kubernetes on this machine, used as people use it. It needs root.
  --only NAMES        these scenarios alone, with commas between them, after the installation that they need
  --runtime NAME      ${RUNTIMES.join(' or ')} alone; default: everything with the first, and some of it with the second
Scenarios:
${SCENARIOS.map(({ name, about }) => `  ${name.padEnd(16)} ${about}`).join('\n')}`;

const { values } = parseArgs({
  options: { only: { type: 'string' }, runtime: { type: 'string' }, help: { type: 'boolean', default: false } },
});

if (values.help) console.log(HELP);
else process.exitCode = await main(values.only?.split(','), values.runtime);

async function main(only: readonly string[] | undefined, runtime: string | undefined): Promise<number> {
  const begin = performance.now();
  const tally = new Tally();
  const unknown = only?.filter((wanted) => !SCENARIOS.some(({ name }) => name === wanted)) ?? [];
  if (unknown.length > 0) throw new Error(`There is no scenario ${unknown.join(', ')}: see --help.`);
  if (process.getuid?.() !== 0) throw new Error('A node of Kubernetes needs root: run this as root, on a machine that is no node already.');
  await ensurePrerequisites([...TEST_PREREQUISITES, ...KUBERNETES_PREREQUISITES]);
  await buildKubernetesTools(NODE_TOOLS, (line) => console.log(line));
  makeGpuUsage().catch(() => undefined); // who needs it waits for it, and says why it is not there
  const archives = await buildImages();
  for (const [index, one] of RUNTIMES.entries()) {
    if (runtime !== undefined && runtime !== one) continue;
    const names = only ?? (index === 0 || runtime !== undefined ? SCENARIOS.map(({ name }) => name) : OF_THE_RUNTIME);
    const possible = SCENARIOS.filter(({ runtime: needed = one }) => needed === one);
    const chosen = possible.filter(({ name }) => names.includes(name));
    if (chosen.length === 0) continue;
    console.log(`== ${one}`);
    const scenarios = chosen.every(({ installs }) => installs)
      ? chosen
      : possible.filter((each) => each === installation || chosen.includes(each));
    await playOn({ runtime: one, archives, scenarios, tally });
  }
  console.log(`all of it: ${seconds(begin)}`);
  return tally.close();
}

interface Play {
  readonly runtime: ContainerRuntime;
  readonly archives: readonly string[];
  readonly scenarios: readonly Scenario[];
  readonly tally: Tally;
}

async function playOn({ runtime, archives, scenarios, tally }: Play): Promise<void> {
  const begin = performance.now();
  const cluster = await Cluster.start(runtime, archives, (line) => console.log(line));
  console.log(`the cluster is up after ${seconds(begin)}`);
  try {
    for (const scenario of scenarios) await play(scenario, cluster, tally);
  } finally {
    await cluster.stop();
  }
}

async function play(scenario: Scenario, cluster: Cluster, tally: Tally): Promise<void> {
  const begin = performance.now();
  const namespace = scenario.name;
  try {
    await cluster.kubectl('create', 'namespace', namespace);
    await scenario.play({ cluster, tally, tenants: new Tenants(cluster, namespace) });
  } catch (error) {
    tally.judge(scenario.name, [(error as Error).stack ?? String(error)]);
  } finally {
    await clear(cluster, namespace);
  }
  console.log(`${scenario.name}: ${seconds(begin)}`);
}

/** Without pods that run a namespace is in nobody's way; that it goes takes Kubernetes another half a dozen seconds. */
async function clear(cluster: Cluster, namespace: string): Promise<void> {
  await cluster.tryKubectl(['delete', 'namespace', namespace, '--wait=false']);
  const selected = '--field-selector=status.phase!=Succeeded,status.phase!=Failed';
  await cluster.tryKubectl(['-n', namespace, 'wait', 'pods', selected, '--for=delete', '--timeout=60s']);
}

function seconds(begin: number): string {
  return `${((performance.now() - begin) / 1000).toFixed(1)} s`;
}
