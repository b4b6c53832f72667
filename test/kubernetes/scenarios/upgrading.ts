import path from 'node:path';
import { chartImages } from '@nvidia-virtual/toolchain/images/chart-images';
import { previousImages } from '../images.js';
import { usageProblems } from './gpu-usage.js';
import { tenantDeployment, tenantPod } from './pods.js';
import { judgeLeavings } from './processes.js';
import { install, SLOTS, uninstall, untilOffered, untilReady, upgrade } from './product.js';
import type { NodeScenario } from './scene.js';
import { runsUndisturbed } from './tenants.js';
import { judgeWhatIsLeft } from './uninstallation.js';

const REPLICAS = 3;

/**
 * Problem of other systems: an upgrade overwrites the library that running programs have mapped,
 * and they crash.
 */
export const upgrading: NodeScenario = {
  name: 'upgrading',
  about: 'from the images of the previous commit to the current ones, while pods continue',
  installs: true,
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    const previous = await previousImages();
    if ('missing' in previous)
      return tally.skip('upgrade from the commit before', previous.missing);
    await cluster.import([previous.archive]);
    // Its chart may have other defaults.
    const chart = chartImages();
    await install(cluster, path.join(previous.directory, 'charts', 'nvidia-virtual'), {
      'images.tag': previous.id,
      'images.registry': chart.registry,
      'images.kubeScheduler': chart.kubeScheduler,
      'images.redis': chart.redis,
    });
    await untilOffered(cluster, SLOTS);
    await tenants.apply(tenantDeployment('old', REPLICAS, { slots: 2 }));
    await tenants.available('old', REPLICAS);
    const old = (await tenants.pods()).map(({ metadata }) => metadata?.name ?? '');
    for (const name of old) await tenants.logUntil(name, 'working');

    await upgrade(cluster);
    await untilReady(cluster, 'node');
    await untilOffered(cluster, SLOTS);
    const disturbed: string[] = [];
    for (const name of old) {
      if (!runsUndisturbed(await tenants.pod(name))) disturbed.push(await tenants.describe(name));
      else await tenants.logUntil(name, `${(await tenants.rounds(name)) + 20} rounds`);
    }
    tally.judge(`upgrade from ${previous.id}: who runs goes on`, disturbed);
    const slots = Object.fromEntries(old.map((name) => [name, 2]));
    tally.judge(
      'and kubectl gpu-usage shows it',
      await usageProblems(cluster, tenants.namespace, slots),
    );
    await tenants.apply(tenantPod('new', { does: 'once', slots: 2 }));
    const printed = await tenants.result('new');
    tally.judge(
      'and a new pod runs beside them',
      printed === 'right\n' ? [] : [printed, await tenants.describe('new')],
    );
    await tenants.delete('deployment/old', 'pod/new');
    await tenants.gone();
    await judgeLeavings(scene);
    await uninstall(cluster);
    await judgeWhatIsLeft(scene);
  },
};
