import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { loadPodResources } from '@nvidia-virtual/kube-common/pod-resources';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { PodResources } from './pod-resources.js';

let root: string;
let kubelet: Server;
let requests: number;
let podResources: PodResources;

/** Plays a kubelet that lists slot `s` as that of a pod with the number of the request. */
beforeEach(async () => {
  root = mkdtempSync(path.join(tmpdir(), 'kubelet-'));
  mkdirSync(path.join(root, 'pod-resources'));
  requests = 0;
  kubelet = new Server();
  kubelet.addService(loadPodResources().service, {
    list: (_: unknown, answer: (error: null, list: object) => void) => {
      const devices = [{ resourceName: RESOURCE, deviceIds: ['s'] }];
      const containers = [{ name: 'main', devices }];
      const pod = { name: String(++requests), namespace: 'n', containers };
      answer(null, { podResources: [pod] });
    },
    getAllocatableResources: () => undefined,
  });
  const socket = `unix:${path.join(root, 'pod-resources', 'kubelet.sock')}`;
  await new Promise<void>((resolve, reject) =>
    kubelet.bindAsync(socket, ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    ),
  );
  podResources = new PodResources(root);
});
afterEach(() => {
  podResources.close();
  kubelet.forceShutdown();
  rmSync(root, { recursive: true });
});

async function ask(): Promise<number> {
  const [holder] = (await podResources.holders()).get('s') ?? [];
  return Number(holder?.pod);
}

test('the kubelet is asked at most 20 times a second, however many programs connect', async () => {
  const end = performance.now() + 1000;
  let calls = 0;
  const connect = async () => {
    for (; performance.now() < end; calls++) await ask();
  };
  await Promise.all(Array.from({ length: 100 }, connect));
  expect(requests).toBeLessThan(25);
  expect(calls).toBeGreaterThanOrEqual(100);
});

test('an answer is of a request that began after the call', async () => {
  const first = ask();
  await eventually(() => expect(requests).toBe(1));
  const [second, third] = [ask(), ask()];
  expect(await Promise.all([first, second, third])).toEqual([1, 2, 2]);
});

test('a kubelet that fails once is asked again', async () => {
  const away = new PodResources(path.join(root, 'other'));
  for (let time = 0; time < 2; time++)
    await expect(away.holders()).rejects.toThrow(path.join(root, 'other'));
  away.close();
});
