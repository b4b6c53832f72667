import type { UsageObject } from '@nvidia-virtual/usage-api/resources';
import { stringify } from 'yaml';

/** Objects as received from the API. */
export function objectText(value: unknown, format: 'json' | 'yaml'): string {
  return format === 'json'
    ? `${JSON.stringify(value, undefined, 4)}\n`
    : stringify(value, { lineWidth: 0 });
}

/** A name in kubectl's format. */
export function nameLine({ kind, metadata }: UsageObject): string {
  return `${kind.toLowerCase()}.usage.nvidia-virtual.io/${metadata.name}`;
}
