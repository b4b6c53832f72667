/** Limit on the labels of a pod in memory. The API server has none, and 90,000 take 8 MB. */
const MOST_LABELS = 256;

type Labels = Readonly<Record<string, string>>;

/** The labels of a pod to keep in memory: all, unless a tenant has made very many. */
export function keptLabels(labels: Labels = {}): Labels {
  const entries = Object.entries(labels);
  return entries.length <= MOST_LABELS ? labels : Object.fromEntries(entries.slice(0, MOST_LABELS));
}
