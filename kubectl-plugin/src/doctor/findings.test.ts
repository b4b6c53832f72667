import type {
  V1ContainerStatus,
  V1DaemonSet,
  V1DaemonSetStatus,
  V1Node,
  V1Pod,
} from '@kubernetes/client-node';
import type { ClusterState } from './cluster-state.js';
import { diagnose } from './findings.js';

const NOW = Date.parse('2026-11-26T12:00:00Z');
const RUNNING = { state: { running: {} }, ready: true, restartCount: 0 };

function container(name: string, more: Partial<V1ContainerStatus> = {}): V1ContainerStatus {
  return { name, image: 'a', imageID: '', ...RUNNING, ...more };
}

function nodePod(containers: V1ContainerStatus[], more: Partial<V1Pod> = {}): V1Pod {
  return {
    metadata: {
      name: 'nvidia-virtual-node-a',
      uid: 'u1',
      labels: { 'app.kubernetes.io/component': 'node' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'x', uid: 'x' }],
    },
    spec: { nodeName: 'gpu-7', containers: [] },
    status: { phase: 'Running', containerStatuses: containers },
    ...more,
  };
}

function node(annotations: Record<string, string> = {}, slots = '10'): V1Node {
  return {
    metadata: { name: 'gpu-7', annotations },
    status: { allocatable: { 'nvidia-virtual/gpu': slots } },
  };
}

const HEALTHY = nodePod([container('device-plugin'), container('gpu-proxy')]);

function daemonSet(name: string, nodes: number, profile?: string): V1DaemonSet {
  const matchLabels = { ...(profile && { 'nvidia-virtual/profile': profile }) };
  return {
    metadata: { name },
    spec: { selector: { matchLabels }, template: {} },
    status: { desiredNumberScheduled: nodes } as V1DaemonSetStatus,
  };
}

function stateOf(more: Partial<ClusterState> = {}): ClusterState {
  return {
    kubernetes: 'v1.36.3',
    namespace: 'gpus',
    release: 'nvidia-virtual',
    version: '0.1.0',
    daemonSets: [daemonSet('nvidia-virtual-node', 1)],
    workloads: [],
    pods: [HEALTHY],
    events: [],
    nodes: [node()],
    apiService: undefined,
    unseen: [],
    ...more,
  };
}

const problemsOf = (more: Partial<ClusterState>, subject: string) =>
  diagnose(stateOf(more), NOW).find((one) => one.subject === subject)?.problems;

test('a healthy release has no problems', () => {
  expect(diagnose(stateOf(), NOW).map(({ subject, problems }) => [subject, problems])).toEqual([
    ['cluster', []],
    ['node gpu-7', []],
  ]);
});

test('what the device plugin found is a problem, as long as the plugin runs', () => {
  const nodes = [node({ 'nvidia-virtual/problems': '["Node gpu-7 has no NVIDIA driver."]' })];
  expect(problemsOf({ nodes }, 'node gpu-7')).toEqual(['Node gpu-7 has no NVIDIA driver.']);
  const ended = { state: { waiting: { reason: 'ContainerCreating' } } };
  const pods = [nodePod([container('device-plugin', ended)])];
  expect(problemsOf({ nodes, pods }, 'node gpu-7')).toEqual([]);
});

test('the reason of a container that restarts is the last line of its log', () => {
  const crashed = {
    restartCount: 4,
    ready: false,
    state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off' } },
    lastState: {
      terminated: { exitCode: 125, message: '{"level":"info"}\ngpu-proxy: no driver.\n' },
    },
  };
  const pods = [nodePod([container('device-plugin'), container('gpu-proxy', crashed)])];
  expect(problemsOf({ pods }, 'node gpu-7')).toEqual([
    'Pod nvidia-virtual-node-a does not run its container gpu-proxy: gpu-proxy: no driver. ' +
      '`kubectl -n gpus logs nvidia-virtual-node-a -c gpu-proxy --previous` shows more.',
  ]);
});

test('an image that is not pulled and a missing directory have the value to set', () => {
  const pulling = {
    ready: false,
    state: { waiting: { reason: 'ImagePullBackOff', message: 'not found' } },
  };
  expect(problemsOf({ pods: [nodePod([container('gpu-proxy', pulling)])] }, 'node gpu-7')).toEqual([
    expect.stringMatching(/ImagePullBackOff: not found\. .*images\.registry/),
  ]);
  const pods = [nodePod([], { status: { phase: 'Pending' } })];
  const message = 'MountVolume.SetUp failed: hostPath type check failed: /x is not a directory';
  const event = {
    reason: 'FailedMount',
    message,
    involvedObject: { uid: 'u1' },
    metadata: { name: 'e' },
  };
  expect(problemsOf({ pods, events: [event] }, 'node gpu-7')).toEqual([
    expect.stringContaining('node.kubeletRoot'),
  ]);
});

test('pods that PodSecurity refuses have the label to set, until that is long ago', () => {
  const refused = (lastTimestamp: string) => ({
    reason: 'FailedCreate',
    message: 'Error creating: pods "x" is forbidden: violates PodSecurity "baseline:latest"',
    involvedObject: { kind: 'DaemonSet', name: 'nvidia-virtual-node' },
    lastTimestamp: lastTimestamp as unknown as Date,
    metadata: { name: 'e' },
  });
  expect(problemsOf({ events: [refused('2026-11-26T11:59:00Z')] }, 'cluster')).toEqual([
    expect.stringContaining('`kubectl label namespace gpus pod-security.kubernetes.io/enforce='),
  ]);
  expect(problemsOf({ events: [refused('2026-11-26T11:00:00Z')] }, 'cluster')).toEqual([]);
});

test('nodes without a pod, without slots, or not ready are named', () => {
  const labelled = { metadata: { name: 'gpu-8', labels: { 'nvidia-virtual/node': 'true' } } };
  expect(problemsOf({ nodes: [labelled] }, 'node gpu-8')).toEqual([
    expect.stringContaining('has no pod here'),
  ]);
  expect(problemsOf({ nodes: [node({}, '0')] }, 'node gpu-7')).toEqual([
    expect.stringContaining('offers no nvidia-virtual/gpu'),
  ]);
  const conditions = [{ type: 'Ready', status: 'False', message: 'PLEG is not healthy' }];
  expect(problemsOf({ nodes: [{ ...node(), status: { conditions } }] }, 'node gpu-7')).toEqual([
    expect.stringContaining('PLEG is not healthy. `kubectl describe node gpu-7`'),
  ]);
});

test('of several DaemonSets, that of the profile of the node is named', () => {
  const daemonSets = [
    daemonSet('nvidia-virtual-node', 0),
    daemonSet('nvidia-virtual-node-small', 1, 'small'),
  ];
  const labelled = (name: string, profile: string): V1Node => ({
    metadata: {
      name,
      labels: { 'nvidia-virtual/node': 'true', 'nvidia-virtual/profile': profile },
    },
  });
  const nodes = [labelled('gpu-8', 'small'), labelled('gpu-9', 'unknown')];
  expect(problemsOf({ daemonSets, nodes }, 'node gpu-8')).toEqual([
    expect.stringContaining('DaemonSet nvidia-virtual-node-small has no pod here'),
  ]);
  expect(problemsOf({ daemonSets, nodes }, 'node gpu-9')).toEqual([
    expect.stringContaining('DaemonSet nvidia-virtual-node has no pod here'),
  ]);
});

test('a release without nodes is named, whatever its profiles', () => {
  const none = daemonSet('nvidia-virtual-node', 0);
  const profile = (nodes: number) => daemonSet('nvidia-virtual-node-small', nodes, 'small');
  expect(problemsOf({ daemonSets: [none, profile(1)] }, 'cluster')).toEqual([]);
  expect(problemsOf({ daemonSets: [none, profile(0)] }, 'cluster')).toEqual([
    expect.stringContaining('No node is ours'),
  ]);
});

test('the usage API that is not reached, missing pods and unreadable objects are problems', () => {
  const conditions = [{ type: 'Available', status: 'False', message: 'no endpoints' }];
  const apiService = { metadata: { name: 'v1alpha1.usage' }, status: { conditions } };
  const workload = {
    kind: 'Deployment',
    metadata: { name: 'nvidia-virtual-webhook' },
    spec: { replicas: 2, selector: {}, template: {} },
    status: { replicas: 1 },
  };
  const unseen = ['Not seen: nodes is forbidden'];
  const state = { apiService, workloads: [workload], unseen } as Partial<ClusterState>;
  expect(problemsOf(state, 'cluster')).toEqual([
    expect.stringContaining('1 of 2 pods of nvidia-virtual-webhook exist'),
    expect.stringContaining('does not reach the usage API: no endpoints.'),
    'Not seen: nodes is forbidden',
  ]);
});
