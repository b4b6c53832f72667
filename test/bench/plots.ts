import { type BarChart, type BarGroup, renderBarChart } from './bar-chart.js';
import type { Results, SharingScenario, SharingTenant } from './results.js';

/** A chart of docs/performance.md. */
interface Plot {
  /** Relative to docs/. */
  readonly file: string;
  readonly title: string;
  readonly svg: string;
}

/** The charts whose measurements exist. */
export function plots(results: Results): Plot[] {
  return [
    plot('throughput', throughput(results)),
    plot('overhead', overhead(results)),
    plot('latency', latency(results)),
  ].flat();
}

function plot(name: string, chart: BarChart): Plot[] {
  if (chart.groups.length === 0) return [];
  return [{ file: `performance/${name}.svg`, title: chart.title, svg: renderBarChart(chart) }];
}

/** Scenarios with equal work of all tenants, so that the sum of their parts is meaningful. */
const EQUAL_TENANTS = [
  ['two of 50 us', 'two, kernels of 50 us'],
  ['two of 200 us', 'two, kernels of 200 us'],
  ['two of 2 ms', 'two, kernels of 2 ms'],
  ['four of 50 us', 'four, kernels of 50 us'],
  ['four of 200 us', 'four, kernels of 200 us'],
  ['four of 2 ms', 'four, kernels of 2 ms'],
  ['two decoders', 'two decoders'],
  ['four decoders', 'four decoders'],
  ['two trainings', 'two ResNet-50 trainings'],
] as const;

function throughput(results: Results): BarChart {
  return {
    title: 'Throughput of several tenants on one GPU',
    axis: 'sum of all tenants, relative to one tenant alone (longer is better)',
    series: ["hardware's time-slicing", 'nvidia-virtual'],
    groups: EQUAL_TENANTS.flatMap(([name, label]) =>
      group(label, scenario(results, name)?.tenants, (tenants) => [
        sum(tenants.map(({ sliced }) => sliced.part)),
        sum(tenants.map(({ shared }) => shared.part)),
      ]),
    ),
    reference: { value: 1, label: 'one tenant alone' },
  };
}

/** The figures of the benchmark with a limit, and the frameworks. */
function overhead({ gpu, frameworks }: Results): BarChart {
  const figures = (gpu?.figures ?? []).filter(({ limit }) => limit !== undefined);
  const calls = figures.flatMap(({ name, unit, ratio }) =>
    ratio === undefined ? [] : [{ name, values: [unit.endsWith('/s') ? 1 / ratio : ratio] }],
  );
  const scripts = (frameworks?.frameworks ?? []).flatMap(({ name, ratio }) =>
    ratio === undefined ? [] : [{ name, values: [ratio] }],
  );
  return {
    title: 'Time through the product, one program alone',
    axis: 'relative to the time natively (shorter is better)',
    series: ['nvidia-virtual'],
    groups: [...scripts, ...calls],
    reference: { value: 1, label: 'native' },
  };
}

const REQUESTS = [
  ['requests above small kernels', 'beside kernels of 50 us'],
  ['requests above batch', 'beside kernels of 600 us'],
  ['requests above training', 'beside ResNet-50 training'],
] as const;

function latency(results: Results): BarChart {
  return {
    title: 'Requests of higher priority',
    axis: 'p99 of a request with 1 ms of work, in ms (shorter is better)',
    series: ['alone', "hardware's time-slicing", 'nvidia-virtual'],
    groups: REQUESTS.flatMap(([name, label]) =>
      group(label, scenario(results, name)?.tenants, ([request]) =>
        [request?.alone, request?.sliced, request?.shared].map((of) => (of?.p99 ?? 0) / 1000),
      ),
    ),
  };
}

function scenario({ sharing }: Results, name: string): SharingScenario | undefined {
  return sharing?.scenarios.find((one) => one.name === name);
}

function group(
  name: string,
  tenants: readonly SharingTenant[] | undefined,
  values: (tenants: readonly SharingTenant[]) => number[],
): BarGroup[] {
  return tenants === undefined ? [] : [{ name, values: values(tenants) }];
}

function sum(parts: readonly (number | null | undefined)[]): number {
  return parts.reduce<number>((total, part) => total + (part ?? 0), 0);
}
