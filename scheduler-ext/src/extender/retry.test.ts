import { EventEmitter, once } from 'node:events';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { pino } from 'pino';
import { Cluster } from '../cluster/cluster.js';
import { Judges } from '../placement/judges.js';
import { gpuOf, inventoryOf, podOf } from '../testing/nodes.js';
import type { Preemptor } from './preemption.js';
import { Retry } from './retry.js';

test('replicas that wait are judged once, and the first ones are retried', async () => {
  const cluster = new Cluster();
  const retried = new EventEmitter();
  const all = once(retried, 'all');
  const paths: string[] = [];
  const api = {
    request: async ({ path }: { readonly path: string }) => {
      if (paths.push(path) === 16) retried.emit('all');
    },
  } as unknown as ApiServer;
  const retry = new Retry({
    ...{ api, cluster, judges: new Judges('binpack') },
    logger: pino({ level: 'silent' }),
  });
  cluster.putNode('node', inventoryOf(gpuOf('a')));
  let judges = 0;
  for (let index = 0; index < 40; index++) {
    const pod = podOf(`pod-${index}`) as Preemptor;
    pod.demand.strategy = (usual) => {
      judges++;
      return usual;
    };
    cluster.putPod(pod);
    retry.judging(pod);
  }
  for (const node of cluster.nodes()) retry.gained(node, false);
  await all;
  expect(paths[15]).toBe('/api/v1/namespaces/default/pods/pod-15/status');
  expect(judges).toBe(1);
});
