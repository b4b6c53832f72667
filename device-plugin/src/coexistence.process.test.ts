import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import path from 'node:path';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { findNvidiaPlugin } from './nvidia-plugin.js';
import { NodeUnderTest } from './testing/node-under-test.js';
import type { ProcessUnderTest } from './testing/process-under-test.js';

let node: NodeUnderTest;
let listeners: Server[];
beforeEach(async () => {
  node = new NodeUnderTest();
  listeners = [];
  await node.kubelet.start();
});
afterEach(async () => {
  for (const listener of listeners) listener.close();
  await node.remove();
});

const NVIDIA = 'nvidia.com/gpu';
const OTHER_GPU = 'GPU-ffffffff-ffff-ffff-ffff-ffffffffffff';

const offered = (count: number) =>
  eventually(() => expect(node.kubelet.healthy).toHaveLength(count));
const says = (plugin: ProcessUnderTest, text: string) =>
  eventually(() => expect(plugin.output).toContain(text));
const gives = (...deviceIds: string[]) => {
  node.kubelet.allocatable = [{ resourceName: NVIDIA, deviceIds }];
};

const uuidsOf = (proxy: ProcessUnderTest) =>
  proxy.log
    .flatMap(({ gpus }) => (gpus as { uuid: string }[] | undefined) ?? [])
    .map(({ uuid }) => uuid);

async function listen(...names: string[]): Promise<void> {
  const socket = path.join(node.kubelet.root, ...names);
  mkdirSync(path.dirname(socket), { recursive: true });
  const listener = createServer((connection) => connection.destroy());
  await new Promise<void>((resolve) => listener.listen(socket, resolve));
  listeners.push(listener);
}

test("number 21: no slots while NVIDIA's plugin offers GPUs that may be ours", async () => {
  gives('0', '1');
  const plugin = node.startPlugin();
  await node.startProxy();
  await says(
    plugin,
    `Node node-1 offers no nvidia-virtual/gpu: a plugin with 2 devices of ${NVIDIA} serves the ` +
      `same GPUs`,
  );
  expect(node.kubelet.registrations).toEqual([]);
  gives();
  await offered(10);
});

test('slots are withdrawn when such a plugin registers', async () => {
  node.startPlugin();
  await node.startProxy();
  await offered(10);
  gives('0');
  await eventually(() => expect(node.kubelet.plugin()).toBeUndefined());
});

test('a plugin that offers other GPUs of the node is no conflict', async () => {
  gives(OTHER_GPU, `${OTHER_GPU}::1`);
  await listen('device-plugins', 'nvidia-gpu.sock');
  node.startPlugin();
  await node.startProxy();
  await offered(10);
});

test('a GPU left to another plugin is neither failed nor a conflict', async () => {
  const plugin = node.startPlugin();
  const both = await node.startProxy({ gpus: 2 });
  await offered(20);
  const [first = '', second = ''] = uuidsOf(both);
  gives(second);
  await eventually(() => expect(node.kubelet.plugin()).toBeUndefined());
  await both.end();
  await node.startProxy({ gpus: 2, only: [first] });
  await offered(10);
  expect(node.kubelet.unhealthy).toEqual([]);
  expect(plugin.output).not.toContain('gpu-proxy no longer lists it');
});

test('a simulated GPU that is no longer configured does not count as failed', async () => {
  const plugin = node.startPlugin();
  const both = await node.startProxy({ gpus: 2 });
  await offered(20);
  await both.end();
  await node.startProxy({ gpus: 1 });
  await eventually(() => expect(node.kubelet.devices).toHaveLength(10));
  expect(node.kubelet.unhealthy).toEqual([]);
  expect(plugin.output).not.toContain('gpu-proxy no longer lists it');
});

test('containers keep their slots of such a GPU until they end', async () => {
  node.startPlugin();
  const both = await node.startProxy({ gpus: 2 });
  await offered(20);
  const [first = ''] = uuidsOf(both);
  const taken = node.kubelet.healthy.slice(10, 14);
  await node.kubelet.allocate(taken);
  await both.end();
  await node.startProxy({ gpus: 2, only: [first] });
  await offered(10);
  expect([node.kubelet.devices.length, node.kubelet.healthy.slice(-4)]).toEqual([14, taken]);
  const allocations = path.join(node.state, 'allocations');
  for (const id of readdirSync(allocations))
    rmSync(path.join(allocations, id), { recursive: true });
  await eventually(() => expect(node.kubelet.devices).toHaveLength(10));
  await offered(10);
});

test('a plugin that listens is a conflict if the kubelet gives no information', async () => {
  await listen('device-plugins', 'nvidia-gpu.sock');
  const plugin = node.startPlugin();
  await node.startProxy();
  const socket = path.join(node.kubelet.root, 'device-plugins', 'nvidia-gpu.sock');
  await says(plugin, `the plugin that listens on ${socket} serves the same GPUs`);
  expect(node.kubelet.registrations).toEqual([]);
});

test.each([
  ['device-plugins', 'nvidia-mig-1g.5gb.sock'],
  ['device-plugins', 'nvidiaGPU-1700000000.sock'],
  ['plugins_registry', 'gpu.nvidia.com-reg.sock'],
])('%s/%s is a socket of such a plugin', async (...names) => {
  await listen('device-plugins', 'other.sock');
  expect(await findNvidiaPlugin(node.kubelet.root, [])).toBeUndefined();
  await listen(...names);
  expect(await findNvidiaPlugin(node.kubelet.root, [])).toBe(
    `the plugin that listens on ${path.join(node.kubelet.root, ...names)}`,
  );
});

test('both plugins can be allowed by configuration', async () => {
  gives('0');
  await listen('device-plugins', 'nvidia-gpu.sock');
  node.startPlugin(['--allow', 'nvidia-plugin']);
  await node.startProxy();
  await offered(10);
});

describe('number 13: a default runtime that gives GPUs to containers without a request', () => {
  const asking = { NVIDIA_VISIBLE_DEVICES: 'all' };

  test('is detected by its mounts, and no slots are offered', async () => {
    const plugin = node.startPlugin([], asking, 'nvidia-smi');
    await node.startProxy();
    await says(
      plugin,
      'Node node-1 offers no nvidia-virtual/gpu: its default container runtime gives the real ' +
        'GPUs to any pod',
    );
    expect(node.kubelet.registrations).toEqual([]);
  });

  test('can be allowed by configuration', async () => {
    node.startPlugin(['--allow', 'nvidia-runtime'], asking, 'nvidia-smi');
    await node.startProxy();
    await offered(10);
  });
});
