import { tenantPod } from './pods.js';
import { SLOTS, untilOffered } from './product.js';
import { leavings } from './processes.js';
import type { Scenario } from './scene.js';
import { runsUndisturbed } from './tenants.js';
import { untilRegistered } from './registration.js';

const RESTARTS = 20;

/** Issue of other systems: pods fail with UnexpectedAdmissionError, and a kubelet's restart kills those that run. */
export const kubeletRestarts: Scenario = {
  name: 'kubelet-restarts',
  about: `${RESTARTS} restarts of the kubelet in a row: who runs goes on, and nobody is refused once the plugin is registered`,
  async play({ cluster, tally, tenants }) {
    await tenants.apply(tenantPod('steady', { slots: 2 }));
    await tenants.logUntil('steady', 'working');
    const gaps: number[] = [];
    const refused: string[] = [];
    for (let round = 0; round < RESTARTS; round++) {
      const before = Date.now();
      await cluster.daemon('kubelet').kill();
      cluster.daemon('kubelet').start();
      gaps.push(await untilRegistered(before));
      const name = `round-${round}`;
      await tenants.apply(tenantPod(name, { does: 'once', slots: SLOTS - 2 }));
      const printed = await tenants.result(name);
      if (printed !== 'right\n') refused.push(`round ${round}: ${await tenants.describe(name)}`);
      await tenants.delete('pod', name);
    }
    tally.judge(`${RESTARTS} restarts of the kubelet: every new pod runs`, refused);
    const steady = await tenants.pod('steady');
    tally.judge('and the one that ran goes on', runsUndisturbed(steady) ? [] : [await tenants.describe('steady')]);
    gaps.sort((a, b) => a - b);
    console.log(`from the kubelet's socket to the plugin's registration: median ${format(gaps[RESTARTS / 2])}, worst ${format(gaps.at(-1))}`);
    await tenants.delete('pod', 'steady');
    await untilOffered(cluster, SLOTS);
    tally.judge('and nothing is left', await leavings());
  },
};

function format(milliseconds = Number.NaN): string {
  return `${Math.round(milliseconds)} ms`;
}
