import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { PodEvents } from '@nvidia-virtual/gpu-proxy/kubernetes/pod-events';
import { pino } from 'pino';
import { ControlPlane } from '../control-plane.js';
import { eventually } from './scene.js';

const AGAIN_MS = 300;

let plane: ControlPlane;
let api: CoreV1Api;
let config: KubeConfig;

beforeAll(async () => {
  plane = await ControlPlane.start();
  config = new KubeConfig();
  config.loadFromFile(plane.adminKubeconfig);
  api = config.makeApiClient(CoreV1Api);
});
afterAll(() => plane?.stop());

function podEvents(): PodEvents {
  return new PodEvents(config, 'node-1', pino({ level: 'silent' }), AGAIN_MS);
}

function pod(name: string) {
  return { namespace: 'default', name, uid: `uid-of-${name}` };
}

async function told(name: string): Promise<[string | undefined, number | undefined][]> {
  const { items } = await api.listNamespacedEvent({ namespace: 'default', fieldSelector: `involvedObject.name=${name}` });
  return items.map(({ message, count }) => [message, count]);
}

test('what is about the same is one event, with the latest sentence and how often it was', async () => {
  const events = podEvents();
  for (const asked of [1, 2, 3]) events.warn(pod('one'), 'GpuMemoryQuotaReached', `asked for ${asked}`, 'quota');
  events.warn(pod('one'), 'GpuWorkerDied', 'it died');
  await eventually(async () =>
    expect((await told('one')).sort()).toEqual([
      ['asked for 3', 3],
      ['it died', 1],
    ]),
  );
});

test('an event that is there no more is told anew', async () => {
  const events = podEvents();
  events.warn(pod('two'), 'GpuMemoryQuotaReached', 'the first', 'quota');
  await eventually(async () => expect(await told('two')).toEqual([['the first', 1]]));
  await api.deleteCollectionNamespacedEvent({ namespace: 'default', fieldSelector: 'involvedObject.name=two' });
  await eventually(async () => {
    events.warn(pod('two'), 'GpuMemoryQuotaReached', 'the next', 'quota');
    expect(await told('two')).toEqual([['the next', expect.any(Number)]]);
  });
});
