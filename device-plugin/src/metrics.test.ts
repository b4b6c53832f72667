import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseExposition } from '@nvidia-virtual/gpu-proxy/testing/exposition';
import { Metrics } from './metrics.js';

const DOCUMENT = path.resolve(import.meta.dirname, '../README.md');
const SOURCE = {
  slots: () => ({ healthy: 7, unhealthy: 3 }),
  watched: () => true,
  proxyAnswers: () => false,
  gpus: () => [
    { uuid: 'GPU-1', healthy: true },
    { uuid: 'GPU-2', healthy: false },
  ],
};

const sampleOf = async (metrics: Metrics, name: string, labels: object = {}) => {
  const samples = [...parseExposition(await metrics.registry.metrics()).values()].flatMap(
    (family) => family.samples,
  );
  return samples.find(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
};

test('metrics have current values and the label of the node', async () => {
  const metrics = new Metrics('node-1', SOURCE);
  expect(
    await sampleOf(metrics, 'nvidia_virtual_plugin_slots', { health: 'unhealthy', node: 'node-1' }),
  ).toMatchObject({ value: 3 });
  for (const { uuid, healthy } of SOURCE.gpus())
    expect(
      await sampleOf(metrics, 'nvidia_virtual_plugin_gpu_healthy', { gpu: uuid, node: 'node-1' }),
    ).toMatchObject({ value: Number(healthy) });
  expect(await sampleOf(metrics, 'nvidia_virtual_plugin_kubelet_connected')).toMatchObject({
    value: 1,
  });
  expect(await sampleOf(metrics, 'nvidia_virtual_plugin_proxy_connected')).toMatchObject({
    value: 0,
  });
});

test('allocation() counts successes and failures, and passes both on', async () => {
  const metrics = new Metrics('node-1', SOURCE);
  expect(metrics.allocation(() => 'given')).toBe('given');
  const refuse = () => {
    throw new Error('no');
  };
  expect(() => metrics.allocation(refuse)).toThrow('no');
  for (const result of ['granted', 'refused'])
    expect(
      await sampleOf(metrics, 'nvidia_virtual_plugin_allocations_total', { result }),
    ).toMatchObject({ value: 1 });
  expect(await sampleOf(metrics, 'nvidia_virtual_plugin_allocate_seconds_count')).toMatchObject({
    value: 2,
  });
});

test('README.md has every metric with its help, and no other', async () => {
  const rows = [
    ...readFileSync(DOCUMENT, 'utf8').matchAll(/^\| `(nvidia_virtual_\w+)` \| (\w+) \| (.+) \|$/gm),
  ].map(([, ...row]) => row);
  const families = parseExposition(await new Metrics('node-1', SOURCE).registry.metrics());
  expect(rows).toEqual([...families].map(([name, { type, help }]) => [name, type, help]));
});
