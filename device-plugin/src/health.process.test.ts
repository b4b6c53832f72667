import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { NodeUnderTest } from './testing/node-under-test.js';

let node: NodeUnderTest;
beforeEach(async () => {
  node = new NodeUnderTest();
  await node.kubelet.start();
});
afterEach(() => node.remove());

const counts = (healthy: number, unhealthy: number) =>
  eventually(() =>
    expect([node.kubelet.healthy.length, node.kubelet.unhealthy.length]).toEqual([
      healthy,
      unhealthy,
    ]),
  );

test('number 14: free slots of a failed GPU are unhealthy until it recovers', async () => {
  node.startPlugin();
  const both = await node.startProxy({ gpus: 2 });
  await counts(20, 0);
  const taken = node.kubelet.healthy.slice(6, 14);
  await node.kubelet.allocate(taken);
  node.fail(1);
  await counts(10, 10);
  expect(node.kubelet.healthy).toEqual(expect.arrayContaining(taken));
  node.fail();
  await counts(20, 0);
  expect(both.running).toBe(true);
});

test('number 14: a GPU that failed before gpu-proxy started recovers by itself', async () => {
  node.startPlugin();
  const former = await node.startProxy({ gpus: 2 });
  await counts(20, 0);
  await former.end();
  node.fail(1);
  const one = await node.startProxy({ gpus: 2 });
  await counts(10, 10);
  node.fail();
  expect(await one.exited()).toBe(0);
  expect(one.output).toContain('gpu-proxy exits, so that its restart serves this GPU too');
  // The kubelet does the same.
  const both = await node.startProxy({ gpus: 2 });
  await counts(20, 0);
  expect(both.running).toBe(true);
});

test('number 14: only a long absence of gpu-proxy makes all slots unhealthy', async () => {
  const plugin = node.startPlugin(['--proxy-patience', '1s']);
  const proxy = await node.startProxy();
  await counts(10, 0);
  await proxy.end('SIGKILL');
  await counts(0, 10);
  expect(plugin.output).toContain('gpu-proxy of node node-1 has not answered for 1 s');
  await node.startProxy();
  await counts(10, 0);
});
