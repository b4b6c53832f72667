import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { ControlPlane } from '../../kubernetes/control-plane.js';
import { REPOSITORY } from '../../paths.js';
import { type Comparison, compare, type LocalResults, type Printed } from '../figures.js';
import { measureBindRate } from './bind-rate.js';
import { ExtenderProcess } from './extender-process.js';
import {
  type Latency,
  mean,
  measureUndisturbed,
  quantile,
  typicalPods,
  unlikePods,
} from './latency.js';
import { createNodes, createRunningPods, nodeName } from './load.js';
import { race } from './race.js';

const HELP = `Measures the extender before a real API server, with a real kube-scheduler.
  --nodes COUNT  with 8 GPUs each (default: 5000)
  --pods COUNT   running pods (default: 20000)
  --binds COUNT  pods that kube-scheduler places each time (default: 1000)
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

/** Nodes of the cluster, as it grows to its full size. */
const SIZES = [100, 1000, Number(values.nodes)];

function boundAlone(size: number): string {
  return `pods that kube-scheduler binds without the extender, ${size} nodes`;
}

function boundWith(size: number): string {
  return `pods that kube-scheduler binds with the extender, ${size} nodes`;
}

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
  ...SIZES.flatMap((size) => [
    { name: boundAlone(size) },
    { name: boundWith(size), reference: boundAlone(size), least: 0.8 },
  ]),
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
  const rates: Printed[] = [];
  for (const [index, size] of SIZES.entries()) {
    const from = SIZES[index - 1] ?? 0;
    console.log(`making ${size} nodes, where ${Math.round((size * pods) / nodes)} pods run`);
    await createNodes(api, from, size);
    await createRunningPods(api, from, size, Math.round(((size - from) * pods) / nodes));
    rates.push(...(await measureBindRates(plane, api, size, binds)));
  }
  const start = performance.now();
  const extender = await ExtenderProcess.start(plane);
  const started = (performance.now() - start) / 1000;
  try {
    const names = Array.from({ length: nodes }, (_, index) => nodeName(index));
    const all = await measureUndisturbed(extender, names, typicalPods(), 800);
    const unlike = await measureUndisturbed(extender, names, unlikePods(850), 800);
    const fifth = await measureUndisturbed(extender, names.slice(0, nodes / 5), typicalPods(), 800);
    const raced = await race(api, extender, names.slice(-25), 600);
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
      ...rates,
    ];
  } finally {
    await extender.stop();
    api.close();
  }
}

async function measureBindRates(
  plane: ControlPlane,
  api: ApiServer,
  size: number,
  pods: number,
): Promise<Printed[]> {
  const alone = await measureBindRate({ plane, api, port: undefined, pods });
  const extender = await ExtenderProcess.start(plane);
  try {
    const { port } = extender;
    const value = await measureBindRate({ plane, api, port, pods });
    return [
      { name: boundAlone(size), value: alone, unit: '1/s' },
      { name: boundWith(size), value, unit: '1/s' },
    ];
  } finally {
    await extender.stop();
  }
}

function perThousand({ milliseconds, candidates }: Latency): number {
  return (mean(milliseconds) / candidates) * 1000;
}
