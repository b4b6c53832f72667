import { parseArgs } from 'node:util';
import type { V1PodList } from '@kubernetes/client-node';
import { buildKubernetesTools, NODE_TOOLS } from '@nvidia-virtual/toolchain/kubernetes-tools';
import {
  ensurePrerequisites,
  KUBERNETES_PREREQUISITES,
  TEST_PREREQUISITES,
} from '@nvidia-virtual/toolchain/prerequisites';
import { lookUntil } from '../processes.js';
import { Tally } from '../tally.js';
import type { Cluster } from './cluster/cluster.js';
import { type ContainerRuntime, RUNTIMES } from './cluster/container-runtime.js';
import { withExistingCluster } from './cluster/existing-cluster.js';
import { TestNode } from './cluster/test-node.js';
import { buildImages } from './images.js';
import { artifacts } from './scenarios/artifacts.js';
import { checkpoint } from './scenarios/checkpoint.js';
import { containers } from './scenarios/containers.js';
import { driverUpgrade } from './scenarios/driver-upgrade.js';
import { foreignLibrary } from './scenarios/foreign-library.js';
import { full } from './scenarios/full.js';
import { makeGpuUsage } from './scenarios/gpu-usage.js';
import { installation } from './scenarios/installation.js';
import { kubeletRestarts } from './scenarios/kubelet-restarts.js';
import { memoryFirst } from './scenarios/memory-first.js';
import { moving } from './scenarios/moving.js';
import { oversubscription } from './scenarios/oversubscription.js';
import { preflight } from './scenarios/preflight.js';
import { judgeLeavings } from './scenarios/processes.js';
import { change } from './scenarios/product.js';
import { quickStart } from './scenarios/quick-start.js';
import { reboot } from './scenarios/reboot.js';
import { restarts } from './scenarios/restarts.js';
import { restricted } from './scenarios/restricted.js';
import type { NodeScenario, Scenario } from './scenarios/scene.js';
import { sharing } from './scenarios/sharing.js';
import { stolenSocket } from './scenarios/stolen-socket.js';
import { storm } from './scenarios/storm.js';
import { support } from './scenarios/support.js';
import { suspension } from './scenarios/suspension.js';
import { Tenants } from './scenarios/tenants.js';
import { uninstallation } from './scenarios/uninstallation.js';
import { upgrading, upgradingFromFirst } from './scenarios/upgrading.js';
import { usage } from './scenarios/usage.js';
import { userNamespaces } from './scenarios/user-namespaces.js';
import { webhook } from './scenarios/webhook.js';

/**
 * In this order, on one cluster: one of the first two installs the product, which all others need
 * but those that install it themselves.
 */
const SCENARIOS: readonly (Scenario | NodeScenario)[] = [
  ...[installation, artifacts],
  ...[sharing, suspension, support, foreignLibrary, usage, containers, restricted],
  ...[stolenSocket, userNamespaces, full, webhook],
  ...[restarts, kubeletRestarts, storm, reboot, checkpoint],
  ...[memoryFirst, oversubscription, moving, driverUpgrade],
  ...[uninstallation, preflight],
  ...[upgrading, quickStart, upgradingFromFirst],
];
const NAMESPACES = '/api/v1/namespaces';
/** Names of the scenarios that run if none is named. */
const UNNAMED = SCENARIOS.filter(({ onlyByName }) => !onlyByName).map(({ name }) => name);
/** Scenarios in which the other container runtime could differ. */
const OF_THE_RUNTIME = ['artifacts', 'sharing', 'stolen-socket', 'user-namespaces'];

const HELP = `Tests the product in a real Kubernetes. By default this machine becomes its node, \
which requires root. If KUBECONFIG is set, the scenarios marked * run on that cluster instead.
  --only NAMES        only these scenarios, separated by commas, after the installation that they \
need
  --runtime NAME      ${RUNTIMES.join(' or ')} only; default: everything with the first, and some \
scenarios with the second
  --archives          only builds the images, and prints the archives that a node of a cluster needs
  --set NAME=VALUE    a value of the chart for the cluster of KUBECONFIG, for example \
node.backend=real
Scenarios:
${SCENARIOS.map(helpOf).join('\n')}`;

function helpOf({ name, anywhere, about, onlyByName }: Scenario | NodeScenario): string {
  const note = onlyByName ? '; only if named' : '';
  return `  ${anywhere ? '*' : ' '} ${name.padEnd(20)} ${about}${note}`;
}

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    runtime: { type: 'string' },
    archives: { type: 'boolean', default: false },
    set: { type: 'string', multiple: true, default: [] },
    help: { type: 'boolean', default: false },
  },
});
const only = values.only?.split(',');

if (values.help) console.log(HELP);
else process.exitCode = await main();

async function main(): Promise<number> {
  const begin = performance.now();
  const unknown = only?.filter((wanted) => !SCENARIOS.some(({ name }) => name === wanted)) ?? [];
  if (unknown.length > 0)
    throw new Error(`There is no scenario ${unknown.join(', ')}: see --help.`);
  const kubeconfig = process.env['KUBECONFIG'];
  await ensurePrerequisites(
    kubeconfig === undefined
      ? [...TEST_PREREQUISITES, ...KUBERNETES_PREREQUISITES]
      : TEST_PREREQUISITES,
  );
  if (values.archives) {
    console.log((await buildImages()).join('\n'));
    return 0;
  }
  const tally = new Tally();
  if (kubeconfig === undefined) await playHere(tally);
  else await playElsewhere(kubeconfig, tally);
  console.log(`all of it: ${seconds(begin)}`);
  return tally.close();
}

/** On a cluster whose node is this machine, once for each container runtime. */
async function playHere(tally: Tally): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new Error(
      'A node of Kubernetes needs root: run this as root, on a machine that is no node already.',
    );
  await buildKubernetesTools(NODE_TOOLS, (line) => console.log(line));
  makeGpuUsage().catch(() => undefined); // callers await it, and report why it failed
  const archives = buildImages();
  const { runtime } = values;
  const plays = RUNTIMES.filter((one) => (runtime ?? one) === one).map((one, index) => ({
    runtime: one,
    scenarios: choose(
      SCENARIOS.filter((each) => each.anywhere || (each.runtime ?? one) === one),
      only ?? (index === 0 ? UNNAMED : OF_THE_RUNTIME),
    ),
  }));
  for (const [index, each] of plays.entries()) {
    if (each.scenarios.length === 0) continue;
    console.log(`== ${each.runtime}`);
    const later = plays.slice(index).flatMap(({ scenarios }) => scenarios);
    await playOn({ ...each, later, archives, tally });
  }
}

/** In the background. What fails here fails in play(). */
function prepare(scenarios: readonly (Scenario | NodeScenario)[], cluster: TestNode): void {
  for (const scenario of scenarios)
    if ('prepare' in scenario) scenario.prepare(cluster).catch(() => undefined);
}

/** On a cluster of the user, which has the images already. */
async function playElsewhere(kubeconfig: string, tally: Tally): Promise<void> {
  const scenarios = choose(
    SCENARIOS.filter((each) => each.anywhere === true),
    only ?? UNNAMED,
  );
  if (scenarios.length === 0)
    throw new Error(`${only?.join(', ')}: these scenarios need a node that is this machine.`);
  const chartValues = Object.fromEntries(values.set.map(parseSetting));
  await withExistingCluster(kubeconfig, chartValues, async (cluster) => {
    console.log(`== node ${cluster.nodeName} of ${kubeconfig}`);
    await playAll(scenarios, { cluster, tally });
  });
}

function parseSetting(setting: string): [string, string] {
  const [, name, value] = /^([^=]+)=(.*)$/.exec(setting) ?? [];
  if (name === undefined || value === undefined)
    throw new Error(`--set ${setting}: write NAME=VALUE.`);
  return [name, value];
}

/** The scenarios of these names, after an installation if they need one. */
function choose<S extends Scenario | NodeScenario>(
  possible: readonly S[],
  names: readonly string[],
): S[] {
  const chosen = possible.filter(({ name }) => names.includes(name));
  if (chosen.some(({ name }) => name === artifacts.name))
    return chosen.filter(({ name }) => name !== installation.name);
  return chosen.every(({ installs }) => installs)
    ? chosen
    : possible.filter((each) => each.name === installation.name || chosen.includes(each));
}

interface Play {
  readonly runtime: ContainerRuntime;
  readonly archives: Promise<readonly string[]>;
  readonly scenarios: readonly (Scenario | NodeScenario)[];
  /** These, and those with other runtimes. */
  readonly later: readonly (Scenario | NodeScenario)[];
  readonly tally: Tally;
}

async function playOn({ runtime, archives, scenarios, later, tally }: Play): Promise<void> {
  const begin = performance.now();
  const cluster = await TestNode.start(runtime, archives, (line) => console.log(line));
  console.log(`the cluster is up after ${seconds(begin)}`);
  try {
    const stage = { cluster, tally };
    await playAll(scenarios.slice(0, 1), stage); // which keeps both processors busy
    prepare(later, cluster);
    await playAll(scenarios.slice(1), stage);
  } finally {
    await cluster.stop();
  }
}

interface Stage<C extends Cluster> {
  readonly cluster: C;
  readonly tally: Tally;
}

interface Playable<C extends Cluster>
  extends Pick<Scenario, 'name' | 'installs' | 'values' | 'slots' | 'beside'> {
  play(scene: Stage<C> & { readonly tenants: Tenants }): Promise<void>;
}

/** In their order; two at a time while neighbours run beside each other. */
async function playAll<C extends Cluster>(
  scenarios: readonly Playable<C>[],
  stage: Stage<C>,
): Promise<void> {
  for (let next = 0; next < scenarios.length; ) {
    const rest = scenarios.slice(next);
    const alone = rest.findIndex(({ beside }) => !beside);
    const together = rest.slice(0, alone < 0 ? rest.length : Math.max(alone, 1));
    next += together.length;
    const lane = async () => {
      for (let each = together.shift(); each; each = together.shift()) await play(each, stage);
    };
    await Promise.all([lane(), lane()]);
    await judgeLeavings(stage);
  }
}

async function play<C extends Cluster>(
  scenario: Playable<C>,
  { cluster, tally }: Stage<C>,
): Promise<void> {
  const begin = performance.now();
  const namespace = `nvidia-virtual-test-${scenario.name}`;
  try {
    if (!scenario.installs) await change(cluster, scenario.values ?? {}, scenario.slots);
    await open(cluster, namespace);
    await scenario.play({ cluster, tally, tenants: new Tenants(cluster, namespace) });
  } catch (error) {
    tally.judge(scenario.name, [(error as Error).stack ?? String(error)]);
  } finally {
    await clear(cluster, namespace);
  }
  console.log(`${scenario.name}: ${seconds(begin)}`);
}

/**
 * Creates a namespace. Resolves when it has what each pod needs: controllers add that a little
 * later.
 */
async function open(cluster: Cluster, namespace: string): Promise<void> {
  const body = { metadata: { name: namespace } };
  await cluster.api.request({ method: 'POST', path: NAMESPACES, body });
  for (const needed of ['serviceaccounts/default', 'configmaps/kube-root-ca.crt']) {
    const path = `${NAMESPACES}/${namespace}/${needed}`;
    const look = () =>
      cluster.api.request({ path }).then(
        () => true,
        () => false,
      );
    if (!(await lookUntil(look, (isThere) => isThere)))
      throw new Error(`namespace ${namespace} got no ${needed}`);
  }
}

/**
 * A namespace without running pods disturbs nothing. Kubernetes begins to remove its objects after
 * five seconds, so pods are deleted here. A namespace that is being deleted gets no others.
 */
async function clear(cluster: Cluster, namespace: string): Promise<void> {
  const path = `${NAMESPACES}/${namespace}`;
  const pods = `${path}/pods`;
  try {
    for (const each of [path, pods]) await cluster.api.request({ method: 'DELETE', path: each });
    const fieldSelector = 'status.phase!=Succeeded,status.phase!=Failed';
    const look = () => cluster.api.request<V1PodList>({ path: pods, query: { fieldSelector } });
    await lookUntil(look, ({ items }) => items.length === 0, { milliseconds: 60_000 });
  } catch (error) {
    console.log(`${namespace} was not cleared: ${error}`);
  }
}

function seconds(begin: number): string {
  return `${((performance.now() - begin) / 1000).toFixed(1)} s`;
}
