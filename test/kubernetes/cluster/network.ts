import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { BRIDGE, CNI_CONFIGURATION, NODE_ADDRESS, POD_NETWORK } from './places.js';

/**
 * The bridge of the pods. It must exist before the first pod, because the API server listens on its
 * address.
 */
export function makeNetwork(): void {
  ip('link', 'add', BRIDGE, 'type', 'bridge');
  ip('address', 'add', `${NODE_ADDRESS}/16`, 'dev', BRIDGE);
  ip('link', 'set', BRIDGE, 'up');
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
  mkdirSync(CNI_CONFIGURATION, { recursive: true });
  writeFileSync(path.join(CNI_CONFIGURATION, '10-bridge.conflist'), JSON.stringify(CONFIGURATION));
}

/**
 * Removes the rules of Kubernetes and its network plugin from the packet filter, and keeps all
 * others.
 */
export function removeNetwork(): void {
  const saved = execFileSync('iptables-save', { encoding: 'utf8' });
  const kept = withoutKubernetes(saved);
  if (kept !== saved)
    execFileSync('iptables-restore', { input: kept, stdio: ['pipe', 'ignore', 'ignore'] });
  try {
    ip('link', 'delete', BRIDGE);
  } catch {
    // there is none
  }
}

/** Chains and their rules in the output of iptables-save. */
function withoutKubernetes(saved: string): string {
  return saved
    .split('\n')
    .filter((line) => !/\b(KUBE|CNI)-/.test(line))
    .join('\n');
}

const CONFIGURATION = {
  cniVersion: '0.4.0',
  name: 'pods',
  plugins: [
    {
      type: 'bridge',
      bridge: BRIDGE,
      isGateway: true,
      ipMasq: true,
      hairpinMode: true,
      ipam: {
        type: 'host-local',
        ranges: [[{ subnet: POD_NETWORK }]],
        routes: [{ dst: '0.0.0.0/0' }],
        dataDir: '/run/nvidia-virtual-test-node',
      },
    },
  ],
};

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
