import { readdirSync } from 'node:fs';
import path from 'node:path';
import { readIfThere } from '@nvidia-virtual/gpu-proxy/files';
import { POD_LOGS } from '../cluster/places.js';

/** All lines that a container of the product on the node has written, of those of its pods whose logs the kubelet still has. */
export function nodeLog(container: 'device-plugin' | 'gpu-proxy'): string[] {
  const files = readdirSync(POD_LOGS, { recursive: true }) as string[];
  const logs = files.filter((file) => new RegExp(`^nvidia-virtual_nvidia-virtual-node-[^/]+/${container}/\\d+\\.log$`).test(file));
  return logs.flatMap((file) => (readIfThere(path.join(POD_LOGS, file)) ?? '').split('\n'));
}

/** What gpu-proxy said of a pod: where its name stands, and all about the allocations that it had. */
export function proxyLogOf(pod: string): string[] {
  const lines = nodeLog('gpu-proxy');
  const named = lines.filter((line) => line.includes(pod));
  const allocations = new Set(named.flatMap((line) => /"allocation":"(\w+)"/.exec(line)?.[1] ?? []));
  return lines.filter((line) => line.includes(pod) || [...allocations].some((id) => line.includes(id)));
}
