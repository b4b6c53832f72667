import type { V1LabelSelectorRequirement, V1PodDisruptionBudget } from '@kubernetes/client-node';
import type { PodRecord } from '../cluster/pod.js';

/** Whether this budget counts that pod. */
export function protects(
  { metadata, spec }: V1PodDisruptionBudget,
  { namespace, labels }: Pick<PodRecord, 'namespace' | 'labels'>,
): boolean {
  const { selector } = spec ?? {};
  if (selector === undefined || metadata?.namespace !== namespace) return false;
  const equal = Object.entries(selector.matchLabels ?? {}).every(
    ([key, value]) => labels[key] === value,
  );
  return (
    equal && (selector.matchExpressions ?? []).every((expression) => holds(expression, labels))
  );
}

function holds(
  { key, operator, values = [] }: V1LabelSelectorRequirement,
  labels: PodRecord['labels'],
): boolean {
  // Each object inherits `constructor` and others.
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    default:
      return value === undefined;
  }
}
