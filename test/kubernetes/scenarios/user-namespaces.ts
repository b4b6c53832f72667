import { podsProblems } from './gpu-usage.js';
import { tenantPod } from './pods.js';
import type { NodeScenario } from './scene.js';
import { runsUndisturbed } from './tenants.js';

const SLOTS = 2;
/** In the host's user namespace, /proc/self/uid_map maps all users to themselves. */
const NOT_MAPPED = /^\s*0\s+0\s/;

export const userNamespaces: NodeScenario = {
  name: 'user-namespaces',
  beside: true,
  about: 'a pod with hostUsers: false gets its slice, and its root is not root on the node',
  runtime: 'containerd-2',
  async play({ cluster, tally, tenants }) {
    await tenants.apply(tenantPod('mapped', { slots: SLOTS, spec: { hostUsers: false } }));
    await tenants.logUntil('mapped', 'working');
    const map = await cluster.kubectl(
      '-n',
      tenants.namespace,
      'exec',
      'mapped',
      '--',
      'cat',
      '/proc/self/uid_map',
    );
    tally.judge(
      'a pod with hostUsers: false computes right results as a user of its own',
      NOT_MAPPED.test(map) ? [map] : [],
    );
    tally.judge(
      'and kubectl gpu-usage shows it',
      await podsProblems(cluster, tenants.namespace, { mapped: SLOTS }),
    );
    const before = await tenants.rounds('mapped');
    await tenants.logUntil('mapped', `${before + 20} rounds`);
    const pod = await tenants.pod('mapped');
    tally.judge('and it goes on', runsUndisturbed(pod) ? [] : [await tenants.describe('mapped')]);
    await tenants.delete('pod', 'mapped');
  },
};
