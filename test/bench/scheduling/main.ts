import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { schedulerConfiguration } from '@nvidia-virtual/scheduler-ext/testing/scheduler-configuration';
import { ControlPlane } from '../../kubernetes/control-plane.js';
import { pod } from '../../kubernetes/scheduler/objects.js';
import { REPOSITORY } from '../../paths.js';
import { type Comparison, compare, type LocalResults, type Printed } from '../figures.js';
import { ExtenderProcess } from './extender-process.js';
import {
  type Latency,
  mean,
  measureUndisturbed,
  quantile,
  typicalPods,
  unlikePods,
} from './latency.js';
import { createNodes, createPods, createRunningPods, listPods, nodeName } from './load.js';
import { race } from './race.js';

const HELP = `Measures the extender before a real API server, with a real kube-scheduler.
  --nodes COUNT  with 8 GPUs each (default: 5000)
  --pods COUNT   running pods (default: 20000)
  --binds COUNT  pods that kube-scheduler places (default: 1000)
  --json FILE    output file (default: build/bench/scheduling.json; docs/performance.md is \
generated from test/bench/results/scheduling.json)`;

const BUILD = path.join(REPOSITORY, 'build', 'bench');
const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '5000' },
    pods: { type: 'string', default: '20000' },
    binds: { type: 'string', default: '1000' },
    json: { type: 'string', default: path.join(BUILD, 'scheduling.json') },
    help: { type: 'boolean', default: false },
  },
});

const LIMITS: readonly Comparison[] = [
  { name: 'filter and prioritize, mean for a thousand candidate nodes', most: 2 },
  { name: 'the same, tenth percentile of pods' },
  { name: 'processor time of the extender for it, mean for a thousand candidate nodes' },
  { name: 'filter and prioritize, p99', most: 50 },
  { name: 'filter and prioritize, longest' },
  { name: 'the same for pods each unlike all before it, mean for a thousand candidate nodes' },
  { name: 'the same for pods each unlike all before it, p99', most: 50 },
  { name: 'the same at a fifth of the nodes, mean for a thousand candidate nodes' },
  { name: "processors that the machine's host gave to others, in the worst of these three" },
  { name: 'memory of the extender at most', most: 1024 },
  { name: 'start until all nodes and pods are known' },
  { name: 'GPUs oversold by the race of two schedulers', most: 0 },
  { name: 'pods bound in that race' },
  { name: 'pods refused in that race' },
  { name: 'pods bound by kube-scheduler' },
];

if (values.help) console.log(HELP);
else process.exitCode = await main(Number(values.nodes), Number(values.pods), Number(values.binds));

async function main(nodes: number, pods: number, binds: number): Promise<number> {
  mkdirSync(BUILD, { recursive: true });
  const plane = await ControlPlane.start({ say: console.log });
  try {
    const figures = compare(await measure(plane, nodes, pods, binds), LIMITS);
    const machine = {
      processor: cpus()[0]?.model ?? 'unknown',
      cores: availableParallelism(),
      date: new Date().toISOString().slice(0, 10),
    };
    const results: LocalResults = { machine, figures };
    writeFileSync(values.json, `${JSON.stringify(results, null, 2)}\n`);
    for (const { name, value, unit, limit, holds } of figures) {
      console.log(
        `${name}: ${value.toPrecision(4)} ` +
          `${unit}${limit === undefined ? '' : `, ${limit}: ${holds ? 'holds' : 'DOES NOT HOLD'}`}`,
      );
    }
    return figures.every(({ holds }) => holds !== false) ? 0 : 1;
  } finally {
    await plane.stop();
  }
}

async function measure(
  plane: ControlPlane,
  nodes: number,
  pods: number,
  binds: number,
): Promise<Printed[]> {
  const api = ApiServer.load(plane.adminKubeconfig);
  console.log(`making ${nodes} nodes and ${pods} pods`);
  await createNodes(api, nodes);
  await createRunningPods(api, nodes, pods);
  const start = performance.now();
  const extender = await ExtenderProcess.start(plane);
  const started = (performance.now() - start) / 1000;
  try {
    const names = Array.from({ length: nodes }, (_, index) => nodeName(index));
    const all = await measureUndisturbed(extender, names, typicalPods(), 800);
    const unlike = await measureUndisturbed(extender, names, unlikePods(850), 800);
    const fifth = await measureUndisturbed(extender, names.slice(0, nodes / 5), typicalPods(), 800);
    const raced = await race(api, extender, names.slice(-25), 600);
    const rate = await bindRate(plane, api, extender, binds);
    return [
      {
        name: 'filter and prioritize, mean for a thousand candidate nodes',
        value: perThousand(all),
        unit: 'ms',
      },
      {
        name: 'the same, tenth percentile of pods',
        value: (quantile(all.milliseconds, 0.1) / all.candidates) * 1000,
        unit: 'ms',
      },
      {
        name: 'processor time of the extender for it, mean for a thousand candidate nodes',
        value: (all.processorTime / all.candidates) * 1000,
        unit: 'ms',
      },
      { name: 'filter and prioritize, p99', value: quantile(all.milliseconds, 0.99), unit: 'ms' },
      { name: 'filter and prioritize, longest', value: quantile(all.milliseconds, 1), unit: 'ms' },
      {
        name: 'the same for pods each unlike all before it, mean for a thousand candidate nodes',
        value: perThousand(unlike),
        unit: 'ms',
      },
      {
        name: 'the same for pods each unlike all before it, p99',
        value: quantile(unlike.milliseconds, 0.99),
        unit: 'ms',
      },
      {
        name: 'the same at a fifth of the nodes, mean for a thousand candidate nodes',
        value: perThousand(fifth),
        unit: 'ms',
      },
      {
        name: "processors that the machine's host gave to others, in the worst of these three",
        value: Math.max(all.stolen, unlike.stolen, fifth.stolen),
        unit: '%',
      },
      { name: 'memory of the extender at most', value: extender.peakMemory, unit: 'MiB' },
      { name: 'start until all nodes and pods are known', value: started, unit: 's' },
      { name: 'GPUs oversold by the race of two schedulers', value: raced.oversold, unit: '' },
      { name: 'pods bound in that race', value: raced.bound, unit: '' },
      { name: 'pods refused in that race', value: raced.refused, unit: '' },
      { name: 'pods bound by kube-scheduler', value: rate, unit: '1/s' },
    ];
  } finally {
    await extender.stop();
    api.close();
  }
}

function perThousand({ milliseconds, candidates }: Latency): number {
  return (mean(milliseconds) / candidates) * 1000;
}

/**
 * The pods are pending when the scheduler starts. Its start does not count: the clock runs from the
 * first binding to the last.
 */
async function bindRate(
  plane: ControlPlane,
  api: ApiServer,
  extender: ExtenderProcess,
  count: number,
): Promise<number> {
  await createPods(
    api,
    Array.from({ length: count }, (_, index) => pod(`burst-${index}`, { slots: 1 + (index % 3) })),
  );
  await plane.startScheduler(
    'kube-scheduler',
    schedulerConfiguration(`http://127.0.0.1:${extender.port}`, 'binpack'),
  );
  let first: { readonly bound: number; readonly at: number } | undefined;
  for (;;) {
    const burst = (await listPods(api)).filter(({ metadata }) =>
      metadata?.name?.startsWith('burst-'),
    );
    const bound = burst.filter(({ spec }) => spec?.nodeName !== undefined).length;
    if (bound > 0) first ??= { bound, at: performance.now() };
    if (first && bound === count)
      return (count - first.bound) / ((performance.now() - first.at) / 1000);
    await sleep(500);
  }
}
