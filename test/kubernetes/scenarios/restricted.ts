import { restrictedPod, UNPRIVILEGED } from './pods.js';
import type { Scenario } from './scene.js';
import { runsUndisturbed } from './tenants.js';

/** As /proc shows them. */
const WITHOUT_RIGHTS = [
  `Uid: ${UNPRIVILEGED}`,
  'CapBnd: 0000000000000000',
  'NoNewPrivs: 1',
  'Seccomp: 2',
];

/** Problem of other systems: their pods need rights that such a namespace refuses. */
export const restricted: Scenario = {
  name: 'restricted',
  beside: true,
  anywhere: true,
  about:
    'a namespace that enforces the Pod Security Standard "restricted": a pod without any right, ' +
    "under the runtime's seccomp profile, computes",
  async play({ cluster, tally, tenants }) {
    const { namespace } = tenants;
    const label = 'pod-security.kubernetes.io/enforce=restricted';
    await cluster.kubectl('label', 'namespace', namespace, label);
    await tenants.apply(restrictedPod('restricted', 'work'));
    await tenants.logUntil('restricted', '20 rounds');
    const show = ['exec', 'restricted', '--', 'cat', '/proc/1/status'];
    const lines = (await cluster.kubectl('-n', namespace, ...show)).split('\n');
    const rights = lines.map((line) => line.split(/\s+/).slice(0, 2).join(' '));
    tally.judge(
      'a pod without any right computes',
      WITHOUT_RIGHTS.filter((line) => !rights.includes(line)).map((line) => `not "${line}"`),
    );
    const pod = await tenants.pod('restricted');
    tally.judge('and goes on', runsUndisturbed(pod) ? [] : [await tenants.describe('restricted')]);
    await tenants.delete('pod', 'restricted');
  },
};
