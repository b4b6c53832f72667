import path from 'node:path';
import { chartImages } from '@nvidia-virtual/toolchain/images/chart-images';
import { previousImages } from '../images.js';
import { judgeRestore, judgeSave, SAVED } from './checkpoint.js';
import { usageProblems } from './gpu-usage.js';
import { tenantDeployment, tenantPod } from './pods.js';
import { judgeLeavings } from './processes.js';
import { install, SLOTS, uninstall, untilOffered, untilReady, upgrade } from './product.js';
import { NAMESPACE, RELEASE } from './release.js';
import type { NodeScenario, NodeScene } from './scene.js';
import { runsUndisturbed } from './tenants.js';
import { judgeWhatIsLeft } from './uninstallation.js';

const REPLICAS = 2;
/** The last commit before the work on the first release. */
const FIRST = '2ba512c';

export const upgrading: NodeScenario = {
  name: 'upgrading',
  about:
    'from the images of the previous commit to the current ones and back, while pods continue, ' +
    'and one is in a file',
  installs: true,
  prepare: () => imagesOf(undefined),
  play: (scene) => upgradeFrom(scene, undefined),
};

export const upgradingFromFirst: NodeScenario = {
  name: 'upgrading-from-first',
  about: `the same from ${FIRST}, whose images take half an hour to build`,
  installs: true,
  onlyByName: true,
  play: (scene) => upgradeFrom(scene, FIRST), // has no checkpoints
};

const made = new Map<string | undefined, ReturnType<typeof previousImages>>();

function imagesOf(from: string | undefined): ReturnType<typeof previousImages> {
  const images = made.get(from) ?? previousImages(from);
  made.set(from, images);
  return images;
}

/**
 * Problem of other systems: an upgrade overwrites the library that running programs have mapped,
 * and they crash. @param from undefined: the previous commit
 */
async function upgradeFrom(scene: NodeScene, from: string | undefined): Promise<void> {
  const { cluster, tally, tenants } = scene;
  const previous = await imagesOf(from);
  if ('missing' in previous)
    return tally.skip(`upgrade from ${from ?? 'the commit before'}`, previous.missing);
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
  const saves = from === undefined;
  if (saves) {
    await tenants.applyOnceAdmitted(tenantPod(SAVED, { does: 'keep 2', slots: 2 }));
    await tenants.logUntil(SAVED, 'working');
    await judgeSave(scene);
  }
  await tenants.apply(tenantDeployment('old', REPLICAS, { slots: 2 }));
  await tenants.available('old', REPLICAS);
  const old = (await tenants.pods()).map(({ metadata }) => metadata?.name ?? '');
  for (const name of old) await tenants.logUntil(name, 'working');

  await upgrade(cluster);
  if (saves) {
    await untilReady(cluster, 'node');
    await judgeRestore(scene, 'the new version restores what the former one wrote');
  }
  await judgeChange(scene, `upgrade from ${previous.id}`, old);

  await tenants.apply(tenantPod('young', { slots: 2 }));
  await tenants.logUntil('young', 'working');
  await cluster.helm('rollback', RELEASE, '1', '-n', NAMESPACE, '--wait', '--timeout', '120s');
  await judgeChange(scene, `rollback to ${previous.id}`, [...old, 'young']);
  await tenants.delete('deployment/old', 'pod/young', ...(saves ? [`pod/${SAVED}`] : []));
  await tenants.gone();
  await judgeLeavings(scene);
  await uninstall(cluster);
  await judgeWhatIsLeft(scene);
}

/** @param running pods that have run since before the change */
async function judgeChange(
  { cluster, tally, tenants }: NodeScene,
  change: string,
  running: readonly string[],
): Promise<void> {
  await untilReady(cluster, 'node');
  await untilOffered(cluster, SLOTS);
  const disturbances = running.map(async (name) => {
    if (!runsUndisturbed(await tenants.pod(name))) return [await tenants.describe(name)];
    await tenants.logUntil(name, `${(await tenants.rounds(name)) + 20} rounds`);
    return [];
  });
  tally.judge(`${change}: running pods continue`, (await Promise.all(disturbances)).flat());
  const slots = Object.fromEntries(running.map((name) => [name, 2]));
  tally.judge(
    'and kubectl gpu-usage shows them',
    await usageProblems(cluster, tenants.namespace, slots),
  );
  await tenants.apply(tenantPod('new', { does: 'once', slots: 2 }));
  const printed = await tenants.result('new');
  tally.judge(
    'and a new pod runs beside them',
    printed === 'right\n' ? [] : [printed, await tenants.describe('new')],
  );
  await tenants.delete('pod/new');
}
