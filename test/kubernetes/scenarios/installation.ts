import { install, offeredSlots, partPods, SLOTS, untilOffered } from './product.js';
import { NAMESPACE, RELEASE } from './release.js';
import type { Scenario, Scene } from './scene.js';

export const installation: Scenario = {
  name: 'installation',
  anywhere: true,
  about: 'helm install, and a node that offers slots',
  play: judgeInstallation,
};

async function judgeInstallation({ cluster, tally }: Scene): Promise<void> {
  await install(cluster);
  await untilOffered(cluster, SLOTS);
  const parts = await Promise.all(
    ['node', 'scheduler', 'webhook', 'usage-api', 'redis'].map((part) => partPods(cluster, part)),
  );
  const restarted = parts.flat().flatMap(({ metadata, status }) => {
    const count = (status?.containerStatuses ?? []).reduce(
      (sum, { restartCount }) => sum + restartCount,
      0,
    );
    return count > 0 ? [`${metadata?.name} was restarted ${count} times while it came up`] : [];
  });
  tally.judge('helm install brings everything up at once', restarted);
  const { status, output } = await cluster.tryHelm(['test', RELEASE, '-n', NAMESPACE]);
  tally.judge('helm test', status === 0 ? [] : [output]);
  tally.judge(
    'the node offers its slots',
    (await offeredSlots(cluster)) === SLOTS ? [] : ['not any more'],
  );
}
