import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { PodEvents } from '@nvidia-virtual/gpu-proxy/pods/pod-events';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import { ControlPlane } from '../control-plane.js';

const AGAIN_MS = 300;

let plane: ControlPlane;
let api: CoreV1Api;
let server: ApiServer;

beforeAll(async () => {
  plane = await ControlPlane.start();
  const config = new KubeConfig();
  config.loadFromFile(plane.adminKubeconfig);
  api = config.makeApiClient(CoreV1Api);
  server = new ApiServer(config);
});
afterAll(async () => {
  server?.close();
  await plane?.stop();
});

function podEvents(againMs = AGAIN_MS, log: string[] = []): PodEvents {
  return new PodEvents(
    server,
    'node-1',
    pino({ base: null }, { write: (line: string) => log.push(line) }),
    againMs,
  );
}

function pod(name: string) {
  return { namespace: 'default', name, uid: `uid-of-${name}` };
}

async function told(name: string): Promise<[string | undefined, number | undefined][]> {
  const { items } = await api.listNamespacedEvent({
    namespace: 'default',
    fieldSelector: `involvedObject.name=${name}`,
  });
  return items.map(({ message, count }) => [message, count]);
}

test('warnings of a subject are one event with the last message and a count', async () => {
  const events = podEvents();
  for (const asked of [1, 2, 3])
    events.warn(pod('one'), 'GpuMemoryQuotaReached', `asked for ${asked}`, 'quota');
  events.warn(pod('one'), 'GpuWorkerDied', 'it died');
  await eventually(async () =>
    expect((await told('one')).sort()).toEqual([
      ['asked for 3', 3],
      ['it died', 1],
    ]),
  );
});

test('a deleted event is created again', async () => {
  const events = podEvents();
  events.warn(pod('two'), 'GpuMemoryQuotaReached', 'the first', 'quota');
  await eventually(async () => expect(await told('two')).toEqual([['the first', 1]]));
  await api.deleteCollectionNamespacedEvent({
    namespace: 'default',
    fieldSelector: 'involvedObject.name=two',
  });
  await eventually(async () => {
    events.warn(pod('two'), 'GpuMemoryQuotaReached', 'the next', 'quota');
    expect(await told('two')).toEqual([['the next', expect.any(Number)]]);
  });
});

test('a failed event is not retried before its backoff has passed', async () => {
  const log: string[] = [];
  const events = podEvents(600_000, log);
  const target = { ...pod('three'), namespace: 'nowhere' };
  events.warn(target, 'GpuMemoryQuotaReached', 'the first', 'quota');
  await eventually(() =>
    expect(log).toEqual([expect.stringContaining('An event of the pod could not be written')]),
  );
  for (const asked of [1, 2, 3])
    events.warn(target, 'GpuMemoryQuotaReached', `asked for ${asked}`, 'quota');
  for (let subject = 0; subject < 20; subject++)
    events.warn(target, 'GpuWorkerDied', `program ${subject} died`);
  await eventually(() => expect(log).toHaveLength(10));
  await api.listNamespacedEvent({ namespace: 'nowhere' });
  expect(log).toHaveLength(10);
});

test('a failed event is sent later, with all that was counted meanwhile', async () => {
  const log: string[] = [];
  const events = podEvents(AGAIN_MS, log);
  const target = { ...pod('four'), namespace: 'later' };
  events.warn(target, 'GpuMemoryQuotaReached', 'the first', 'quota');
  await eventually(() => expect(log).toHaveLength(1));
  await api.createNamespace({ body: { metadata: { name: 'later' } } });
  events.warn(target, 'GpuMemoryQuotaReached', 'the next', 'quota');
  await eventually(async () => {
    const { items } = await api.listNamespacedEvent({ namespace: 'later' });
    expect(items.map(({ message, count }) => [message, count])).toEqual([['the next', 2]]);
  });
});

test('an event during an outage of the API server is sent afterwards', async () => {
  const log: string[] = [];
  const events = podEvents(AGAIN_MS, log);
  await plane.daemon('kube-apiserver').kill();
  events.warn(pod('five'), 'GpuWorkerDied', 'it died');
  await eventually(() => expect(log.length).toBeGreaterThan(0));
  plane.daemon('kube-apiserver').start();
  await plane.ready();
  await eventually(async () => expect(await told('five')).toEqual([['it died', 1]]));
});
