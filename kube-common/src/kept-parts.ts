import type { V1Container } from '@kubernetes/client-node';
import { RESOURCE } from './names.js';
import { readSlots } from './pod-request.js';

/** Limit on the labels of a pod in memory. The API server has none, and 90,000 take 8 MB. */
const MOST_LABELS = 256;

type Labels = Readonly<Record<string, string>>;

/** The labels of a pod to keep in memory: all, unless a tenant has made very many. */
export function keptLabels(labels: Labels = {}): Labels {
  const entries = Object.entries(labels);
  return entries.length <= MOST_LABELS ? labels : Object.fromEntries(entries.slice(0, MOST_LABELS));
}

/** The containers of a pod with slots, without what a tenant can make large: it can make 20,000. */
export function keptContainers(containers: readonly V1Container[] | undefined): V1Container[] {
  return (containers ?? []).flatMap(({ name, resources, restartPolicy }) => {
    const quantity = resources?.limits?.[RESOURCE] ?? resources?.requests?.[RESOURCE];
    if (quantity === undefined || readSlots(quantity) === 0) return [];
    const kept = { name, resources: { limits: { [RESOURCE]: quantity } } };
    return [{ ...kept, ...(restartPolicy !== undefined && { restartPolicy }) }];
  });
}
