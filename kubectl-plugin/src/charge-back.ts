import { explainPrometheus, PluginError } from './errors.js';
import type { Kubectl } from './kubectl.js';

/** What the pods of a namespace were granted and used in a period. */
export interface NamespaceUsage {
  readonly namespace: string;
  /** Share of the time of GPUs, times hours. */
  readonly gpuHours: Figure;
  /** Memory of GPUs, times hours. */
  readonly gibHours: Figure;
}

interface Figure {
  readonly granted: number;
  readonly used: number;
}

type Quantity = 'gpuGranted' | 'gpuUsed' | 'memoryGranted' | 'memoryUsed';

/** PromQL by quantity; docs/chargeback.md explains it, and a test compares both. */
export function chargeBackQueries(period: string): Record<Quantity, string> {
  const hours = (metric: string) =>
    `sum_over_time(sum by (namespace) (${metric}{namespace!=""})[${period}:5m]) / 12`;
  const used = 'nvidia_virtual_allocation_used_seconds_total{namespace!=""}';
  return {
    gpuGranted: hours('nvidia_virtual_allocation_share_ratio'),
    gpuUsed: `sum by (namespace) (increase(${used}[${period}])) / 3600`,
    memoryGranted: `${hours('nvidia_virtual_allocation_memory_quota_bytes')} / 2^30`,
    memoryUsed: `${hours('nvidia_virtual_allocation_memory_used_bytes')} / 2^30`,
  };
}

interface PrometheusOptions {
  /** NAMESPACE/SERVICE:PORT, or NAMESPACE/https:SERVICE:PORT. */
  readonly prometheus: string;
  /** In Prometheus' format, such as 30d. */
  readonly since: string;
}

interface Answer {
  readonly data: {
    readonly result: readonly {
      readonly metric: Readonly<Record<string, string>>;
      readonly value: readonly [time: number, value: string];
    }[];
  };
}

const SERVICE = /^([a-z0-9.-]+)\/((?:https?:)?[a-z0-9-]+:[a-z0-9-]+)$/;
const PERIOD = /^[1-9]\d*[mhdw]$/;

/**
 * Reads the usage of namespaces from Prometheus, through the API server's proxy, sorted by name.
 * It needs neither the usage API nor the ledger. @throws PluginError, KubectlError
 */
export async function readNamespaceUsage(
  kubectl: Kubectl,
  { prometheus, since }: PrometheusOptions,
): Promise<NamespaceUsage[]> {
  const [, namespace, service] = SERVICE.exec(prometheus) ?? [];
  if (namespace === undefined || service === undefined)
    throw new PluginError('USAGE', {
      reason: `"${prometheus}" is no Prometheus: --prometheus must be NAMESPACE/SERVICE:PORT`,
    });
  if (!PERIOD.test(since))
    throw new PluginError('USAGE', { reason: `"${since}" is no period: --since must be like 30d` });
  const path = `/api/v1/namespaces/${namespace}/services/${service}/proxy/api/v1/query`;
  const query = new URLSearchParams({ query: allInOne(chargeBackQueries(since)) });
  try {
    return toUsage(JSON.parse(await kubectl.get(`${path}?${query}`)) as Answer);
  } catch (error) {
    throw explainPrometheus(error, prometheus, namespace);
  }
}

/** One request for all: the label `quantity` tells the results apart. */
function allInOne(queries: Readonly<Record<Quantity, string>>): string {
  return Object.entries(queries)
    .map(([name, query]) => `label_replace(${query}, "quantity", "${name}", "", "")`)
    .join(' or ');
}

function toUsage({ data: { result } }: Answer): NamespaceUsage[] {
  const namespaces = new Map<string, Partial<Record<Quantity, number>>>();
  for (const { metric, value } of result) {
    const { namespace = '', quantity = '' } = metric;
    const figures = namespaces.get(namespace) ?? {};
    figures[quantity as Quantity] = Number(value[1]);
    namespaces.set(namespace, figures);
  }
  return [...namespaces]
    .map(([namespace, figures]) => ({
      namespace,
      gpuHours: { granted: figures.gpuGranted ?? 0, used: figures.gpuUsed ?? 0 },
      gibHours: { granted: figures.memoryGranted ?? 0, used: figures.memoryUsed ?? 0 },
    }))
    .toSorted((one, other) => one.namespace.localeCompare(other.namespace));
}
