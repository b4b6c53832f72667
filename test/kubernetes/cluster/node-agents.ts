import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import type { ControlPlane } from '../control-plane.js';
import type { DaemonOptions } from '../daemon.js';
import {
  CONTAINERD_SOCKET,
  KUBELET_ROOT,
  NODE_ADDRESS,
  NODE_DIRECTORY,
  POD_LOGS,
  POD_NETWORK,
} from './places.js';

export const NODE_NAME = 'node-1';
const DOMAIN = 'cluster.local';

type Start = Omit<DaemonOptions, 'logFile'>;

/**
 * The kubelet, configured for a machine with other uses: with swap, with either cgroup version, and
 * with little free disk space.
 */
export function kubelet(plane: ControlPlane): Start {
  const configuration = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: NODE_ADDRESS,
    authentication: {
      anonymous: { enabled: false },
      x509: { clientCAFile: plane.authority.certificateFile },
    },
    cgroupDriver: 'cgroupfs',
    clusterDNS: [NODE_ADDRESS],
    clusterDomain: DOMAIN,
    // Tests kill containers again and again, and would wait for minutes.
    crashLoopBackOff: { maxContainerRestartPeriod: '1s' },
    containerRuntimeEndpoint: `unix://${CONTAINERD_SOCKET}`,
    evictionHard: {
      'memory.available': '100Mi',
      'nodefs.available': '1%',
      'imagefs.available': '1%',
    },
    failCgroupV1: false,
    failSwapOn: false,
    healthzPort: 0,
    imageGCHighThresholdPercent: 100,
    // Changes are reported at once in any case. This is the delay until a node's slots are visible.
    nodeStatusUpdateFrequency: '2s',
    podLogsDir: POD_LOGS,
    resolvConf: '',
    shutdownGracePeriod: '0s',
  };
  const file = write('kubelet.json', configuration);
  const credentials = plane.kubeconfig(`system:node:${NODE_NAME}`, ['system:nodes']);
  const args = [
    '--config',
    file,
    '--kubeconfig',
    credentials,
    '--hostname-override',
    NODE_NAME,
    '--node-ip',
    NODE_ADDRESS,
  ];
  return {
    program: kubernetesTool('kubelet'),
    args: [...args, '--root-dir', KUBELET_ROOT, '--cert-dir', path.join(NODE_DIRECTORY, 'pki')],
    // containerd answers before its CRI service is ready. A kubelet that starts too early exits and
    // relies on systemd.
    isRevived: true,
  };
}

export function kubeProxy(plane: ControlPlane): Start {
  const configuration = {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'iptables',
    clientConnection: { kubeconfig: plane.kubeconfig('system:kube-proxy') },
    clusterCIDR: POD_NETWORK,
    // The test must not change these settings of the machine.
    conntrack: { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    healthzBindAddress: '',
    metricsBindAddress: '',
    iptables: { syncPeriod: '30s', minSyncPeriod: '0.2s' },
  };
  const file = write('kube-proxy.json', configuration);
  return {
    program: kubernetesTool('kube-proxy'),
    args: ['--config', file, '--hostname-override', NODE_NAME],
  };
}

export function coreDns(plane: ControlPlane): Start {
  const kubeconfig = plane.kubeconfig('system:coredns', ['system:masters']);
  const file = path.join(NODE_DIRECTORY, 'Corefile');
  writeFileSync(
    file,
    `.:53 {\n  bind ${NODE_ADDRESS}\n  errors\n  kubernetes ` +
      `${DOMAIN} {\n    kubeconfig ${kubeconfig}\n  }\n}\n`,
  );
  return { program: kubernetesTool('coredns'), args: ['-conf', file] };
}

function write(name: string, configuration: object): string {
  mkdirSync(NODE_DIRECTORY, { recursive: true });
  const file = path.join(NODE_DIRECTORY, name);
  writeFileSync(file, JSON.stringify(configuration, undefined, 2));
  return file;
}
