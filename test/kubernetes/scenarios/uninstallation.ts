import { existsSync, readdirSync } from 'node:fs';
import { lookUntil, processesWith } from '../../processes.js';
import type { Cluster } from '../cluster/cluster.js';
import { MARK, STATE_ROOT } from '../cluster/places.js';
import { TestNode } from '../cluster/test-node.js';
import { tenantPod } from './pods.js';
import { SCAN } from './processes.js';
import { offeredSlots, uninstall, untilOffered, upgrade } from './product.js';
import { NAMESPACE, RELEASE } from './release.js';
import type { Scenario, Scene } from './scene.js';
import { runsUndisturbed } from './tenants.js';

const KINDS = [
  ...[
    'mutatingwebhookconfigurations',
    'validatingwebhookconfigurations',
    'validatingadmissionpolicies',
    'validatingadmissionpolicybindings',
  ],
  ...['apiservices', 'clusterroles', 'clusterrolebindings', 'priorityclasses'],
];
/** Kinds of objects that could be left in a namespace. */
const NAMESPACED =
  'all,secrets,configmaps,serviceaccounts,roles,rolebindings,leases,' +
  'networkpolicies,poddisruptionbudgets,events';
/** Kubernetes' own objects in every namespace, and events. */
const OTHERS = /^(event\S*|configmap\/kube-root-ca\.crt|serviceaccount\/default)$/;

export const uninstallation: Scenario = {
  name: 'uninstallation',
  anywhere: true,
  about:
    'refused while pods have GPUs, then forced; afterwards no process, file, ' +
    'webhook or Secret of the product is left',
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    await tenants.apply(tenantPod('working'));
    await tenants.logUntil('working', 'working');
    const refused = await cluster.tryHelm([
      'uninstall',
      RELEASE,
      '-n',
      NAMESPACE,
      '--timeout',
      '60s',
    ]);
    const named = refused.status !== 0 && refused.output.includes(`${tenants.namespace}/working`);
    tally.judge(
      'uninstall is refused while a pod has a GPU, and names it',
      named ? [] : [refused.output],
    );
    const pod = await tenants.pod('working');
    tally.judge(
      'and the pod goes on',
      runsUndisturbed(pod) ? [] : [await tenants.describe('working')],
    );

    const [, rollback = ''] = /`helm (rollback [^`]+)`/.exec(refused.output) ?? [];
    tally.judge('the refusal says how to take it back', rollback === '' ? [refused.output] : []);
    await cluster.helm(...rollback.split(' '));
    await upgrade(cluster, { 'uninstall.withRunningPods': 'true' });
    await uninstall(cluster);
    const printed = await tenants.result('working');
    tally.judge(
      'forced, it ends the program with a CUDA error',
      /: cudaError\w+$/m.test(printed) ? [] : [printed],
    );
    await tenants.delete('pod', 'working');
    await judgeWhatIsLeft(scene);
  },
};

/** Checks after an uninstallation. */
export async function judgeWhatIsLeft({ cluster, tally }: Scene): Promise<void> {
  if (cluster instanceof TestNode) {
    const left = await lookUntil(
      () => processesWith(`${STATE_ROOT}/`),
      (pids) => pids.length === 0,
      SCAN,
    );
    tally.judge(
      'no process is left',
      left.map((pid) => `process ${pid} is left`),
    );
    tally.judge('no file is left', filesLeft());
  } else tally.skip('no process or file is left', 'the node is another machine');
  tally.judge('no object is left', await untilNoneLeft(cluster));
  await untilOffered(cluster, 0);
  tally.judge('the node offers no slots', (await offeredSlots(cluster)) === 0 ? [] : ['it does']);
}

function filesLeft(): string[] {
  const names = existsSync(STATE_ROOT)
    ? readdirSync(STATE_ROOT).filter((name) => name !== MARK)
    : [];
  return names.map((name) => `${STATE_ROOT}/${name} is left`);
}

/** Objects that a hook deleted may need a moment to disappear. */
function untilNoneLeft(cluster: Cluster): Promise<string[]> {
  return lookUntil(
    () => objectsLeft(cluster),
    (left) => left.length === 0,
    { everyMs: 500 },
  );
}

async function objectsLeft(cluster: Cluster): Promise<string[]> {
  const cluster_ = (await cluster.kubectl('get', KINDS.join(','), '-o', 'name'))
    .split('\n')
    .filter((name) => name.includes('nvidia-virtual'));
  const inNamespace = (await cluster.kubectl('-n', NAMESPACE, 'get', NAMESPACED, '-o', 'name'))
    .split('\n')
    .filter((name) => name.includes('/'));
  return [...cluster_, ...inNamespace.filter((name) => !OTHERS.test(name))].map(
    (name) => `${name} is left`,
  );
}
