import { tenantDeployment, tenantPod } from './pods.js';
import { SLOTS, untilOffered } from './product.js';
import type { Scenario } from './scene.js';

export const full: Scenario = {
  name: 'full',
  about: 'a Deployment fills the GPU, one pod more waits and says why, and deletion frees slots',
  async play({ cluster, tally, tenants }) {
    await tenants.apply(tenantDeployment('crowd', SLOTS / 2, { slots: 2 }));
    await tenants.available('crowd', SLOTS / 2);
    tally.judge('a Deployment fills the GPU', []);

    await tenants.apply(tenantPod('late'));
    await tenants.event('late', /Insufficient nvidia-virtual\/gpu/);
    tally.judge('one pod more waits with a clear event', []);

    await tenants.cluster.kubectl('-n', tenants.namespace, 'scale', 'deployment/crowd', `--replicas=${SLOTS / 2 - 1}`);
    await tenants.logUntil('late', 'working');
    tally.judge('deletion frees slots', []);
    await tenants.delete('deployment/crowd', 'pod/late');
    await untilOffered(cluster, SLOTS);
  },
};
