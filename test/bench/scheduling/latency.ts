import type { V1Pod } from '@kubernetes/client-node';
import type { FilterResult } from '@nvidia-virtual/scheduler-ext/extender/messages';
import { container, pod } from '../../kubernetes/scheduler/objects.js';
import { watchStolen } from '../../processes.js';
import { answer, type ExtenderProcess, question } from './extender-process.js';

export interface Latency {
  /** Milliseconds of filter and prioritize together, one value per pod. */
  readonly milliseconds: readonly number[];
  /**
   * Average processor time of the extender per pod in milliseconds. Other processes do not change
   * it.
   */
  readonly processorTime: number;
  readonly candidates: number;
  /** Percentage of this machine's processor time that its host gave to others meanwhile. */
  readonly stolen: number;
}

const WARM_UP = 50;
const MOST_STOLEN = 1;
const MOST_MEASUREMENTS = 6;

/**
 * Default of kube-scheduler for the nodes that it filters itself before it asks. It divides them
 * into pieces of the size of the square root of their number.
 */
const WORKERS = 16;

/** An order in which kube-scheduler may name them, different each time. */
function asFiltered(names: readonly string[]): string[] {
  const size = Math.ceil(Math.sqrt(names.length));
  const pieces = Array.from({ length: Math.ceil(names.length / size) }, (_, index) =>
    names.slice(index * size, (index + 1) * size),
  );
  const working = pieces.splice(0, WORKERS);
  const ordered: string[] = [];
  while (working.length > 0) {
    const worker = Math.floor(Math.random() * working.length);
    ordered.push(...(working[worker]?.splice(0, 1 + Math.floor(Math.random() * 4)) ?? []));
    if (working[worker]?.length === 0) working.splice(worker, 1, ...pieces.splice(0, 1));
  }
  return ordered;
}

/**
 * A mix of pods: small and large ones, one that fits nowhere, several containers, several GPUs,
 * memory that only large slots hold.
 */
export function typicalPods(): V1Pod[] {
  const two = [container('main', 3), container('side', 2)];
  const pods = [
    pod('small', { slots: 1 }),
    pod('half', { slots: 5 }),
    pod('whole', { slots: 10 }),
    pod('two-gpus', { slots: 4, annotations: { 'nvidia-virtual/gpus': '2' } }),
    pod('memory', { slots: 2, annotations: { 'nvidia-virtual/memory': '20Gi' } }),
    pod('two-containers', { spec: { containers: two, initContainers: [container('prepare', 4)] } }),
    pod('nowhere', { slots: 1, annotations: { 'nvidia-virtual/gpu-type': 'B200' } }),
    pod('too-much', { slots: 1, annotations: { 'nvidia-virtual/memory': '20Gi' } }),
  ];
  return pods.map((one) => ({
    ...one,
    metadata: { ...one.metadata, uid: `uid-of-${one.metadata?.name}` },
  }));
}

/** Each pod requests something new, so that no cache helps. */
export function unlikePods(count: number): V1Pod[] {
  const kinds = typicalPods();
  return Array.from({ length: count }, (_, index) => {
    const { metadata, spec } = kinds[index % kinds.length] as V1Pod;
    const annotations = {
      'nvidia-virtual/cores': String(1 + (index % 100)),
      'nvidia-virtual/memory': `${1 + index}Mi`,
      ...metadata?.annotations,
    };
    return { metadata: { ...metadata, annotations }, spec } as V1Pod;
  });
}

/** Repeated if the host gave processor time to others. The least disturbed measurement counts. */
export async function measureUndisturbed(
  ...args: Parameters<typeof measureLatency>
): Promise<Latency> {
  let best = await measureLatency(...args);
  for (let count = 1; best.stolen > MOST_STOLEN && count < MOST_MEASUREMENTS; count++) {
    const latency = await measureLatency(...args);
    if (latency.stolen < best.stolen) best = latency;
  }
  return best;
}

/** Sequential, like a scheduler. The measurement ends when the answer has arrived. */
async function measureLatency(
  extender: ExtenderProcess,
  names: readonly string[],
  pods: readonly V1Pod[],
  rounds: number,
): Promise<Latency> {
  const milliseconds: number[] = [];
  let before = 0;
  let stolenSince = watchStolen();
  for (let round = -WARM_UP; round < rounds; round++) {
    const Pod = pods[(round + WARM_UP) % pods.length] as V1Pod;
    const filter = question({ Pod, NodeNames: asFiltered(names) });
    if (round === 0) [before, stolenSince] = [extender.processorTime, watchStolen()];
    const start = performance.now();
    const filtered = await extender.ask('filter', filter);
    const filterEnd = performance.now();
    const { NodeNames = [], Error: problem } = answer<FilterResult>(filtered);
    if (problem !== undefined) throw new Error(problem);
    const prioritize = question({ Pod, NodeNames });
    const second = performance.now();
    // Like kube-scheduler: with at most one node left there is nothing to score.
    if (NodeNames.length > 1) await extender.ask('prioritize', prioritize);
    if (round >= 0) milliseconds.push(filterEnd - start + (performance.now() - second));
  }
  const processorTime = (extender.processorTime - before) / rounds;
  return {
    milliseconds: milliseconds.sort((a, b) => a - b),
    processorTime,
    candidates: names.length,
    stolen: 100 * stolenSince(),
  };
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** @param sorted ascending */
export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
