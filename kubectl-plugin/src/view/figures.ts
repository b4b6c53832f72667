import { formatQuantity } from '@nvidia-virtual/kube-common/quantity';

const UNKNOWN = '-';

export function bytes(value: number | undefined): string {
  return value === undefined ? UNKNOWN : formatQuantity(value);
}

/** A quota of 0 means no quota. */
export function quota(value: number | undefined): string {
  return value === 0 ? 'any' : bytes(value);
}

export function percent(value: number | undefined): string {
  return value === undefined ? UNKNOWN : `${Math.round(value * 10) / 10}%`;
}

export function count(value: number | undefined): string {
  return value === undefined ? UNKNOWN : String(value);
}

export function seconds(value: number | undefined): string {
  if (value === undefined) return UNKNOWN;
  return value < 60 ? `${Math.round(value * 10) / 10}s` : age(value);
}

/** An age in kubectl's format: 45s, 12m, 5h, 3d. */
function age(value: number): string {
  if (value < 120) return `${Math.max(0, Math.floor(value))}s`;
  if (value < 3 * 3600) return `${Math.floor(value / 60)}m`;
  return value < 48 * 3600 ? `${Math.floor(value / 3600)}h` : `${Math.floor(value / 86_400)}d`;
}

export function ageSince(time: string | undefined, now: number): string {
  return time === undefined ? '<unknown>' : age((now - Date.parse(time)) / 1000);
}
