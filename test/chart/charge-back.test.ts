import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { chargeBackQueries } from '@nvidia-virtual/kubectl-plugin/charge-back';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { buildKubernetesTools, kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';

const BUILDING_PROMTOOL = 900_000;
const GIB = 2 ** 30;

beforeAll(() => buildKubernetesTools(['promtool']), BUILDING_PROMTOOL);

const series = (metric: string, namespace: string, pod: string, values: string) => ({
  series: `nvidia_virtual_allocation_${metric}{namespace="${namespace}",pod="${pod}",gpu="GPU-1"}`,
  values,
});

/** A pod of one allocation, from one minute to another. */
function pod(namespace: string, name: string, from: number, to: number) {
  const life = (value: number) => `_x${from} ${value}x${to - from - 1} stale`;
  return [
    series('share_ratio', namespace, name, life(0.5)),
    series('memory_quota_bytes', namespace, name, life(8 * GIB)),
    series('memory_used_bytes', namespace, name, life(2 * GIB)),
    // A quarter of the GPU's time.
    series('used_seconds_total', namespace, name, `_x${from} 0+15x${to - from - 1} stale`),
  ];
}

/** Evaluates a query after 10 hours. */
function evaluation(expr: string, expected: Readonly<Record<string, number>>) {
  const exp_samples = Object.entries(expected).map(([namespace, value]) => ({
    labels: `{namespace="${namespace}"}`,
    value,
  }));
  return { expr: `round(${expr}, 0.5)`, eval_time: '10h', exp_samples };
}

test('hours of namespaces: two pods after one another, and one beside them', async () => {
  const queries = chargeBackQueries('10h');
  const tests = [
    {
      interval: '1m',
      input_series: [
        ...pod('team-a', 'first', 5, 125),
        ...pod('team-a', 'second', 180, 420),
        ...pod('team-b', 'third', 60, 540),
        ...pod('', 'run-by-hand', 0, 600),
      ],
      promql_expr_test: [
        evaluation(queries.gpuGranted, { 'team-a': 3, 'team-b': 4 }),
        evaluation(queries.gpuUsed, { 'team-a': 1.5, 'team-b': 2 }),
        evaluation(queries.memoryGranted, { 'team-a': 48, 'team-b': 64 }),
        evaluation(queries.memoryUsed, { 'team-a': 12, 'team-b': 16 }),
      ],
    },
  ];
  const directory = mkdtempSync(path.join(tmpdir(), 'charge-back-'));
  try {
    const file = path.join(directory, 'test.yaml');
    writeFileSync(file, JSON.stringify({ tests }));
    const { status, output } = await runCommand(kubernetesTool('promtool'), [
      'test',
      'rules',
      file,
    ]);
    expect([status, output]).toEqual([0, expect.stringContaining('SUCCESS')]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
