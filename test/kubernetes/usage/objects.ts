import { isIPv6 } from 'node:net';
import type { AllocationSpecification, NodeSnapshot } from '@nvidia-virtual/ledger';

const GROUP = 'usage.nvidia-virtual.io';
const RBAC = 'rbac.authorization.k8s.io';
const GIBIBYTE = 2 ** 30;
const GPUS = [
  'GPU-00000000-0000-0000-0000-000000000001',
  'GPU-00000000-0000-0000-0000-000000000002',
] as const;

/** The rights of the usage API, and a role for tenants. */
export const RIGHTS: readonly object[] = [
  ...grant('usage-api', 'usage-api', [
    rule('', ['pods', 'nodes'], ['list', 'watch']),
    rule('authorization.k8s.io', ['subjectaccessreviews'], ['create']),
    {
      ...rule('apiregistration.k8s.io', ['apiservices'], ['get', 'patch']),
      resourceNames: [`v1alpha1.${GROUP}`],
    },
  ]),
  ...grant(
    'usage-api-secret',
    'usage-api',
    [rule('', ['secrets'], ['get', 'create', 'update'])],
    'nvidia-virtual',
  ),
  binding(
    'RoleBinding',
    'usage-api',
    'usage-api',
    { kind: 'Role', name: 'extension-apiserver-authentication-reader' },
    'kube-system',
  ),
];

/**
 * A user who may read the usage of pods in a namespace; without one, of all pods and nodes. Each
 * may open the dashboard.
 */
export function readers(user: string, namespace?: string): object[] {
  const resources = [
    'podgpuusages',
    'dashboard',
    ...(namespace === undefined ? ['nodegpuusages'] : []),
  ];
  return grant(
    `${user}-reads`,
    user,
    [rule(GROUP, resources, ['get', 'list', 'watch'])],
    namespace,
  );
}

function grant(name: string, user: string, rules: object[], namespace?: string): object[] {
  const kind = namespace === undefined ? 'ClusterRole' : 'Role';
  const metadata = { name, ...(namespace !== undefined && { namespace }) };
  return [
    { apiVersion: `${RBAC}/v1`, kind, metadata, rules },
    binding(`${kind}Binding`, name, user, { kind, name }, namespace),
  ];
}

function binding(
  kind: string,
  name: string,
  user: string,
  role: { kind: string; name: string },
  namespace?: string,
): object {
  return {
    apiVersion: `${RBAC}/v1`,
    kind,
    metadata: { name, ...(namespace !== undefined && { namespace }) },
    roleRef: { apiGroup: RBAC, ...role },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: user }],
  };
}

function rule(group: string, resources: string[], verbs: string[]): object {
  return { apiGroups: [group], resources, verbs };
}

/** The API as registered by the chart, with endpoints instead of pods. */
export function registration(address: string, ports: readonly number[]): object[] {
  const metadata = { name: 'nvidia-virtual-usage-api', namespace: 'nvidia-virtual' };
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { ports: [{ name: 'https', port: 443, protocol: 'TCP' }] },
    },
    ...ports.map((port, index) => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        ...metadata,
        name: `replica-${index}`,
        labels: { 'kubernetes.io/service-name': metadata.name },
      },
      addressType: isIPv6(address) ? 'IPv6' : 'IPv4',
      ports: [{ name: 'https', port, protocol: 'TCP' }],
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
    })),
    // Read by the aggregation layer before Kubernetes 1.33.
    {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata,
      subsets: ports.map((port) => ({
        addresses: [{ ip: address }],
        ports: [{ name: 'https', port, protocol: 'TCP' }],
      })),
    },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: `v1alpha1.${GROUP}` },
      spec: {
        group: GROUP,
        version: 'v1alpha1',
        groupPriorityMinimum: 1000,
        versionPriority: 10,
        service: { ...metadata, port: 443 },
      },
    },
  ];
}

export function nodeObject(healthy = true): object {
  const gpus = GPUS.map((uuid, index) => ({
    uuid,
    name: 'Simulated GPU',
    memory: 8 * GIBIBYTE,
    slotMemory: 0.5 * GIBIBYTE,
    slots: 10,
    mode: 'exclusive',
    healthy: index === 0 || healthy,
  }));
  const annotations = { 'nvidia-virtual/inventory': JSON.stringify({ version: 1, gpus }) };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-1', annotations, labels: { zone: 'a' } },
  };
}

interface PodShape {
  readonly namespace: string;
  readonly name: string;
  readonly slots: number;
  readonly node?: string;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
}

export function podObject({
  namespace,
  name,
  slots,
  node,
  labels = {},
  annotations = {},
}: PodShape): object {
  const resources = { limits: { 'nvidia-virtual/gpu': String(slots) } };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, labels, annotations },
    spec: {
      ...(node !== undefined && { nodeName: node }),
      containers: [{ name: 'main', image: 'x', resources }],
    },
  };
}

/** The snapshot of node-1. `granted`: nanoseconds of GPU time that `train` got. */
export function snapshotOf(uids: Readonly<Record<string, string>>, granted: number): NodeSnapshot {
  return {
    node: 'node-1',
    gpus: GPUS.map((uuid, index) => ({
      ...{ uuid, index, name: 'Simulated GPU', memory: 8 * GIBIBYTE, contextMemory: GIBIBYTE / 2 },
      mode: 'exclusive' as const,
    })),
    allocations: [
      allocation({
        id: '1',
        pod: 'train',
        namespace: 'team-a',
        uid: uids['train'] ?? '',
        share: 40,
        slots: 4,
        granted,
        sessions: 1,
      }),
      allocation({
        id: '2',
        pod: 'secret',
        namespace: 'team-b',
        uid: uids['secret'] ?? '',
        share: 10,
        slots: 1,
        granted: 0,
        sessions: 0,
      }),
    ],
  };
}

interface Part {
  readonly id: string;
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  readonly share: number;
  readonly slots: number;
  readonly granted: number;
  readonly sessions: number;
}

function allocation(part: Part): NodeSnapshot['allocations'][number] {
  const id = part.id.padStart(16, '0');
  const specification: AllocationSpecification = {
    version: 1,
    id,
    name: undefined,
    gpus: [GPUS[0]],
    memory: part.slots * 0.5 * GIBIBYTE,
    share: part.share,
    policy: 'burst',
    priority: 0,
    mode: 'exclusive',
    uid: undefined,
    createdAt: new Date(1.7e12).toISOString(),
    draining: false,
    limits: { sessions: 64, pinnedMemory: GIBIBYTE, threads: 256, handles: 65_536 },
    owner: { namespace: part.namespace, pod: part.pod, podUid: part.uid, container: 'main' },
    slots: Array.from({ length: part.slots }, (_, index) => `${id}-${index}`),
  };
  const time = { granted: part.granted, waited: 0, overrun: 0, windows: 1 };
  const sessions = Array.from({ length: part.sessions }, (_, number) => session(id, number + 1));
  return { specification, time, sessions };
}

function session(
  allocation: string,
  number: number,
): NodeSnapshot['allocations'][number]['sessions'][number] {
  const client = { pid: 1000, startTime: '5000', program: '/usr/bin/python3', uid: 1000 };
  const worker = { pid: 2000, startTime: '6000' };
  const bytesCopied = { hostToDevice: 0, deviceToHost: 0, deviceToDevice: 0 };
  return {
    record: {
      version: 1,
      number,
      allocation,
      client,
      worker,
      slot: number,
      startedAt: new Date(1.7e12).toISOString(),
    },
    use: {
      memory: GIBIBYTE,
      peakMemory: 1.5 * GIBIBYTE,
      contexts: 1,
      launches: 10,
      bytesCopied,
      faults: 0,
    },
  };
}
