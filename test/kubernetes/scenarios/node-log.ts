import { readdirSync } from 'node:fs';
import path from 'node:path';
import { namesIn, readIfThere } from '@nvidia-virtual/service/files';
import type { Cluster } from '../cluster/cluster.js';
import { POD_LOGS } from '../cluster/places.js';
import { TestNode } from '../cluster/test-node.js';
import { NAMESPACE } from './release.js';

/**
 * All log lines of a container of the product on the node, from those pods whose logs the kubelet
 * still has.
 */
export function nodeLog(container: 'device-plugin' | 'gpu-proxy'): string[] {
  // Not recursively: that fails if the kubelet removes a directory meanwhile.
  const directories = readdirSync(POD_LOGS)
    .filter((name) => name.startsWith('nvidia-virtual_nvidia-virtual-node-'))
    .map((name) => path.join(POD_LOGS, name, container));
  const logs = directories.flatMap((directory) =>
    namesIn(directory)
      .filter((name) => /^\d+\.log$/.test(name))
      .map((name) => path.join(directory, name)),
  );
  return logs.flatMap((file) => (readIfThere(file) ?? '').split('\n'));
}

/** Whether a pod has printed this line, also if the kubelet does not know it yet. */
export function hasPrinted(namespace: string, pod: string, line: string): boolean {
  const directories = readdirSync(POD_LOGS).filter((name) =>
    name.startsWith(`${namespace}_${pod}_`),
  );
  return directories
    .flatMap((name) => (readIfThere(path.join(POD_LOGS, name, 'main', '0.log')) ?? '').split('\n'))
    .some((text) => text.endsWith(` stdout F ${line}`));
}

/**
 * gpu-proxy's log lines about a pod: those with its name, and those of its allocations. On another
 * machine, only those of the current container.
 */
export async function proxyLogOf(cluster: Cluster, pod: string): Promise<string[]> {
  const lines =
    cluster instanceof TestNode ? nodeLog('gpu-proxy') : await presentLog(cluster, 'gpu-proxy');
  const named = lines.filter((line) => line.includes(pod));
  const allocations = new Set(
    named.flatMap((line) => /"allocation":"(\w+)"/.exec(line)?.[1] ?? []),
  );
  return lines.filter(
    (line) => line.includes(pod) || [...allocations].some((id) => line.includes(id)),
  );
}

async function presentLog(cluster: Cluster, container: string): Promise<string[]> {
  const selected = ['-l', 'app.kubernetes.io/component=node', '-c', container, '--tail=-1'];
  return (await cluster.tryKubectl(['-n', NAMESPACE, 'logs', ...selected])).output.split('\n');
}
