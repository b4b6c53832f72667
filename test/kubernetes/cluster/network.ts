import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { BRIDGE, CNI_CONFIGURATION, NODE_ADDRESS, POD_NETWORK } from './places.js';

/**
 * The bridge that pods are attached to. It must be there before the first pod, since the API server
 * listens on its address.
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
 * Takes everything of Kubernetes and its network plugin out of the packet filter, and leaves the
 * rest as it is.
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

/** Chains, and rules in them or to them, of a dump by iptables-save. */
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
