import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { eventually, until } from '@nvidia-virtual/service/testing/eventually';
import { containerFiles } from './container-files.js';
import { NodeUnderTest } from './testing/node-under-test.js';

let node: NodeUnderTest;
beforeEach(async () => {
  node = new NodeUnderTest();
  await node.kubelet.start();
});
afterEach(() => node.remove());

const offered = (count: number) =>
  eventually(() => expect(node.kubelet.healthy).toHaveLength(count));

test('the first start waits for gpu-proxy, then offers the slots of its GPUs', async () => {
  const plugin = node.startPlugin();
  await eventually(() => expect(plugin.said('serving')).toBe(true));
  expect(node.kubelet.registrations).toEqual([]);
  await node.startProxy({ gpus: 2, slots: 100 });
  await offered(200);
  const [registration] = node.kubelet.registrations;
  const options = { preStartRequired: false, getPreferredAllocationAvailable: false };
  expect(registration).toMatchObject({
    version: 'v1beta1',
    resourceName: 'nvidia-virtual/gpu',
    options,
  });
  expect(node.kubelet.plugin()?.options).toEqual(options);
  expect(new Set(node.kubelet.healthy).size).toBe(200);
  expect(node.kubelet.healthy[0]).toMatch(/^[0-9a-f]{16}-00$/);
});

test('a container gets a directory, our files, two variables and no device', async () => {
  node.startPlugin();
  await node.startProxy();
  await offered(10);
  const slots = node.kubelet.healthy.slice(3, 5);
  const { envs, mounts, ...others } = await node.kubelet.allocate(slots);
  expect(others).toEqual({});
  expect(envs).toEqual({
    NVIDIA_VISIBLE_DEVICES: 'void',
    TRITON_LIBCUDA_PATH: '/usr/lib/x86_64-linux-gnu',
  });
  expect(mounts.map(({ containerPath, readOnly }) => [containerPath, readOnly])).toEqual([
    ['/run/nvidia-virtual', true],
    ['/usr/lib/x86_64-linux-gnu/libcuda.so.1', true],
    ['/usr/lib/x86_64-linux-gnu/libcuda.so', true],
    ['/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1', true],
    ['/usr/lib/x86_64-linux-gnu/libnvidia-ml.so', true],
    ['/usr/lib64/libcuda.so.1', true],
    ['/usr/lib64/libcuda.so', true],
    ['/usr/lib64/libnvidia-ml.so.1', true],
    ['/usr/lib64/libnvidia-ml.so', true],
    ['/etc/profile.d/nvidia-virtual.sh', true],
    ['/dev/nvidiactl', true],
    ['/etc/ld.so.preload', true],
    ['/usr/lib/nvidia-virtual/libcuda.so', true],
  ]);
  const [client, library] = mounts.map(({ hostPath }) => hostPath) as [string, string];
  expect(path.dirname(path.dirname(client))).toBe(path.join(node.state, 'allocations'));
  expect(statSync(client).isDirectory()).toBe(true);
  const grant = JSON.parse(
    readFileSync(path.join(path.dirname(client), 'grant.json'), 'utf8'),
  ) as object;
  expect(grant).toMatchObject({ slots, build: path.basename(path.dirname(path.dirname(library))) });
  const installed = readFileSync(path.join(node.installation, 'lib/libcuda.so.1'));
  expect(readFileSync(library).equals(installed)).toBe(true);
  for (const { hostPath } of mounts) expect(existsSync(hostPath)).toBe(true);
});

test("a container gets the node's nvidia-smi, unless that is switched off", async () => {
  const mounted = async () => {
    const { mounts } = await node.kubelet.allocate(node.kubelet.healthy.slice(0, 1));
    return mounts.some(({ containerPath }) => containerPath === '/usr/bin/nvidia-smi');
  };
  const first = node.startPlugin();
  await node.startProxy();
  await offered(10);
  expect(await mounted()).toBe(false);
  writeFileSync(path.join(node.state, 'nvidia-smi'), '');
  expect(await mounted()).toBe(true);
  await first.end();
  await eventually(() => expect(node.kubelet.plugin()).toBeUndefined());
  node.startPlugin(['--nvidia-smi', 'false']);
  await offered(10);
  expect(await mounted()).toBe(false);
});

test('/etc/ld.so.preload names mounted libraries only, and can be left out', async () => {
  const [preloading, other] = [true, false].map((preload) => containerFiles({ preload }));
  const preloaded = '/etc/ld.so.preload';
  const [, file = ''] = preloading?.find(([place]) => place === preloaded) ?? [];
  const lines = readFileSync(path.join(node.installation, file), 'utf8').trim().split('\n');
  const paths = preloading?.map(([place]) => place);
  expect(paths).toEqual(expect.arrayContaining(lines.filter((line) => !line.startsWith('#'))));
  for (const [, each] of preloading ?? [])
    expect(existsSync(path.join(node.installation, each))).toBe(true);
  expect(other?.map(([place]) => place)).not.toContain(preloaded);
  node.startPlugin(['--preload', 'false']);
  await node.startProxy();
  await offered(10);
  const { mounts } = await node.kubelet.allocate(node.kubelet.healthy.slice(0, 1));
  expect(mounts.map(({ containerPath }) => containerPath)).not.toContain(preloaded);
});

test('number 17: the list of 800 slots is small, and so is the answer for all', async () => {
  node.startPlugin();
  await node.startProxy({ gpus: 8, slots: 100 });
  await offered(800);
  expect(JSON.stringify(node.kubelet.devices).length).toBeLessThan(64 * 1024);
  expect(JSON.stringify(await node.kubelet.allocate(node.kubelet.healthy)).length).toBeLessThan(
    4096,
  );
});

test('an unknown slot is refused with a message', async () => {
  node.startPlugin();
  await node.startProxy();
  await offered(10);
  await expect(node.kubelet.allocate(['0000000000000000-00'])).rejects.toThrow(
    'Node node-1 no longer has slot 0000000000000000-00',
  );
});

test('number 4: a restarted plugin offers the same slots at once, without gpu-proxy', async () => {
  const first = node.startPlugin();
  const proxy = await node.startProxy({ gpus: 2 });
  await offered(20);
  const slots = node.kubelet.healthy;
  expect(await first.end()).toBe(0);
  await proxy.end('SIGKILL');
  await eventually(() => expect(node.kubelet.devices).toEqual([]));
  expect(
    existsSync(
      path.join(node.kubelet.pluginDirectory, node.kubelet.registrations[0]?.endpoint ?? ''),
    ),
  ).toBe(false);
  node.startPlugin();
  await offered(20);
  expect(node.kubelet.healthy).toEqual(slots);
  expect((await node.kubelet.allocate(slots.slice(0, 2))).mounts).toHaveLength(13);
});

test('number 4: 20 restarts of the kubelet in a row', async () => {
  node.startPlugin();
  await node.startProxy();
  await offered(10);
  for (let restart = 1; restart <= 20; restart++) {
    await node.kubelet.restart();
    await offered(10);
    expect((await node.kubelet.allocate(node.kubelet.healthy.slice(0, 1))).mounts).toHaveLength(13);
  }
});

test('the kubelet may start after the plugin, and its directory may be recreated', async () => {
  const plugin = node.startPlugin();
  await node.startProxy();
  await offered(10);
  node.kubelet.stop();
  rmSync(node.kubelet.pluginDirectory, { recursive: true });
  await eventually(() =>
    expect(plugin.said(`${node.kubelet.pluginDirectory} does not exist.`)).toBe(true),
  );
  mkdirSync(node.kubelet.pluginDirectory);
  await node.kubelet.start();
  await offered(10);
});

test('a plugin whose socket was removed creates another one', async () => {
  node.startPlugin();
  await node.startProxy();
  await offered(10);
  const [first] = node.kubelet.registrations;
  rmSync(path.join(node.kubelet.pluginDirectory, first?.endpoint ?? ''));
  await eventually(() => expect(node.kubelet.registrations.length).toBeGreaterThan(1));
  await offered(10);
  expect(node.kubelet.registrations.at(-1)?.endpoint).not.toBe(first?.endpoint);
});

test('number 5: a plugin that a newer one replaced before its end stays away', async () => {
  const old = node.startPlugin();
  await node.startProxy();
  await offered(10);
  const before = await node.kubelet.allocate(node.kubelet.healthy.slice(0, 1));
  writeFileSync(path.join(node.installation, 'of-the-new-version'), '');
  node.startPlugin();
  await eventually(() => expect(node.kubelet.registrations).toHaveLength(2));
  await old.end();
  // The kubelet drops the newer one too when it notices the end of the old one.
  const after = await until(async () => {
    await offered(10);
    return node.kubelet.allocate(node.kubelet.healthy.slice(0, 1)).catch(() => undefined);
  });
  const [former, latter] = [before, after].map(({ mounts }) => mounts[1]?.hostPath ?? '');
  expect(former).not.toBe(latter);
  expect([former, latter].map((library) => existsSync(library ?? ''))).toEqual([true, true]);
});

test('a superseded plugin that the kubelet dropped does not register again', async () => {
  const old = node.startPlugin();
  await node.startProxy();
  await offered(10);
  const young = node.startPlugin();
  await eventually(() => expect(young.said('registered')).toBe(true));
  await node.kubelet.restart();
  await offered(10);
  const refusals = () =>
    old.log.filter(({ msg }) => String(msg).includes('A newer device plugin has registered'));
  await eventually(() => expect(refusals()).toHaveLength(1));
  await young.end();
  // A missing directory is another problem. After it, the plugin logs again that it is superseded.
  node.kubelet.stop();
  rmSync(node.kubelet.pluginDirectory, { recursive: true });
  await eventually(() =>
    expect(old.said(`${node.kubelet.pluginDirectory} does not exist.`)).toBe(true),
  );
  mkdirSync(node.kubelet.pluginDirectory);
  await node.kubelet.start();
  await eventually(() => expect(refusals()).toHaveLength(2));
  expect(node.kubelet.plugin()).toBeUndefined();
});

test('number 3: the pod gets the error message when its slots cannot be allocated', async () => {
  node.startPlugin();
  await node.startProxy();
  await offered(10);
  rmSync(path.join(node.state, 'allocations'), { recursive: true });
  writeFileSync(path.join(node.state, 'allocations'), '');
  const sentence =
    `No directory can be created in ${node.state} for 1 slot: file already ` +
    `exists. Free space there on node node-1`;
  await expect(node.kubelet.allocate(node.kubelet.healthy.slice(0, 1))).rejects.toThrow(sentence);
});

test('all wrong options are reported at once', async () => {
  const plugin = node.startPlugin(['--allow', 'anything', '--proxy-patience', '1h']);
  expect(await plugin.end('SIGCONT')).toBe(2);
  expect(plugin.output).toContain(
    '--allow is "anything", but must be nvidia-plugin or nvidia-runtime.',
  );
  expect(plugin.output).toContain('--proxy-patience is "1h"');
});
