import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { PluginError } from '@nvidia-virtual/device-plugin/errors';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { ControlPlane } from '../kubernetes/control-plane.js';
import { CHART, helm, type KubernetesObject } from './chart.js';

const BUILDING_TOOLS = 1800_000;
const COMMAND = path.join(REPOSITORY, 'release-hooks', 'bin', 'release-hooks.js');
const [NAMESPACE, RELEASE] = ['gpus', 'nvidia-virtual'];
const NODES = ['gpu-1', 'gpu-2'];
const CORE = `/api/v1/namespaces/${NAMESPACE}`;

let plane: ControlPlane;
let api: ApiServer;

/** Controllers make pods; this test acts as their kubelet, without containers. */
beforeAll(async () => {
  plane = await ControlPlane.start({ controllerManager: true });
  api = ApiServer.load(plane.adminKubeconfig);
  for (const name of NODES)
    await post('/api/v1/nodes', { metadata: { name, labels: nodeLabels(name) } });
  await post('/api/v1/namespaces', { metadata: { name: NAMESPACE } });
}, BUILDING_TOOLS);
afterEach(async () => {
  await run('uninstall', '--no-hooks');
  // There is no kubelet that ends them. A controller may delete some of them at the same time.
  await api.request({
    method: 'DELETE',
    path: `${CORE}/pods`,
    query: { labelSelector: 'app.kubernetes.io/name=nvidia-virtual', gracePeriodSeconds: 0 },
  });
});
afterAll(async () => {
  api?.close();
  await plane?.stop();
});

function nodeLabels(name: string): object {
  return {
    'kubernetes.io/hostname': name,
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'amd64',
    'nvidia-virtual/node': 'true',
  };
}

function post(place: string, body: object): Promise<KubernetesObject> {
  return api.request({ method: 'POST', path: place, body });
}

function run(verb: string, ...flags: string[]): Promise<{ status: number; output: string }> {
  const place = ['--namespace', NAMESPACE, '--kubeconfig', plane.adminKubeconfig];
  return helm(verb, RELEASE, ...place, ...flags);
}

const install = () => run('install', CHART, '--set', 'installCheck.enabled=false');

async function podsOf(labelSelector: string): Promise<KubernetesObject[]> {
  const query = { labelSelector };
  return (await api.request<{ items: [] }>({ path: `${CORE}/pods`, query })).items;
}

function patchStatus({ metadata }: KubernetesObject, status: object): Promise<unknown> {
  return api.request({
    method: 'PATCH',
    path: `${CORE}/pods/${metadata.name}/status`,
    body: { status },
    contentType: 'application/strategic-merge-patch+json',
  });
}

/** Answers for each node as its check would. */
async function answer(messageOf: (node: string) => string | undefined): Promise<void> {
  const pods = await until(async () => {
    const all = await podsOf('app.kubernetes.io/component=preflight');
    const found = all.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    return found.length === NODES.length ? found : undefined;
  });
  for (const pod of pods) {
    const node = pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
      .nodeSelectorTerms[0].matchFields[0].values[0] as string;
    const target = { apiVersion: 'v1', kind: 'Node', name: node };
    await post(`${CORE}/pods/${pod.metadata.name}/binding`, { metadata: pod.metadata, target });
    const message = messageOf(node);
    if (message === undefined) await reportMissingDirectory(pod);
    else
      await patchStatus(pod, {
        initContainerStatuses: [
          {
            ...{ name: 'check', image: 'a', imageID: '', ready: true, restartCount: 0 },
            state: { terminated: { exitCode: 0, message } },
          },
        ],
      });
  }
}

async function reportMissingDirectory({ metadata }: KubernetesObject): Promise<void> {
  const { name, namespace, uid } = metadata;
  await post(`${CORE}/events`, {
    metadata: { name: 'no-directory', namespace },
    involvedObject: { kind: 'Pod', name, namespace, uid },
    type: 'Warning',
    reason: 'FailedMount',
    message: 'MountVolume.SetUp failed: hostPath type check failed: /var/lib/kubelet/x is not',
  });
}

/** Runs the command of the Job with the rights of its account. @returns its output */
async function runJob(): Promise<string> {
  const pod = await until(async () =>
    (await podsOf('job-name=nvidia-virtual-preflight-check')).find(
      ({ status }) => status.phase === 'Pending',
    ),
  );
  const account = `${CORE}/serviceaccounts/${pod.spec.serviceAccountName}/token`;
  const { status: token } = await post(account, { spec: { expirationSeconds: 3600 } });
  const kubeconfig = plane.kubeconfigFor(token.token, NAMESPACE);
  const args = [COMMAND, ...pod.spec.containers[0].command.slice(1), '--kubeconfig', kubeconfig];
  const { status, output } = await runCommand(process.execPath, args);
  await patchStatus(pod, { phase: status === 0 ? 'Succeeded' : 'Failed' });
  return output;
}

async function daemonSets(): Promise<string[]> {
  const place = `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets`;
  const { items } = await api.request<{ items: KubernetesObject[] }>({ path: place });
  return items.map(({ metadata }) => metadata.name);
}

const driverMissing = (node: string) =>
  `${new PluginError('DRIVER_MISSING', { node, oldest: 550 }).message}\n`;

test('an install ends before its objects with one list of what nodes lack', async () => {
  const [{ status, output }, list] = await Promise.all([
    install(),
    runJob(),
    answer(driverMissing),
  ]);
  expect([status, output]).toEqual([1, expect.stringContaining('failed pre-install')]);
  expect(list).toContain('Not installed, because nodes lack something:\n- Node NODE has no NVIDIA');
  expect(list).toContain('NODE is each of gpu-1, gpu-2.');
  expect(list).toContain('`helm uninstall nvidia-virtual -n gpus`');
  expect(await daemonSets()).toEqual([]);
});

test('a node without the directories of the kubelet is named with the value to set', async () => {
  const [{ status }, list] = await Promise.all([
    install(),
    runJob(),
    answer((node) => (node === 'gpu-1' ? '' : undefined)),
  ]);
  expect([status, list]).toEqual([1, expect.stringContaining('starts on node gpu-2')]);
  expect(list).toContain('node.kubeletRoot');
});

test('an install goes on if the nodes lack nothing', async () => {
  const [{ status, output }] = await Promise.all([install(), runJob(), answer(() => '')]);
  expect([status, output]).toEqual([0, expect.anything()]);
  expect(await daemonSets()).toEqual(['nvidia-virtual-node']);
});

test('an admission policy that refuses the pods of nodes is the reason', async () => {
  const policies = '/apis/admissionregistration.k8s.io/v1';
  const metadata = { name: 'no-host' };
  await post(`${policies}/validatingadmissionpolicies`, {
    metadata,
    spec: {
      matchConstraints: {
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
        ],
      },
      validations: [
        { expression: '!object.spec.?hostPID.orValue(false)', message: 'Stay off the host.' },
      ],
    },
  });
  await post(`${policies}/validatingadmissionpolicybindings`, {
    metadata,
    spec: { policyName: 'no-host', validationActions: ['Deny'] },
  });
  await refusesHostPods();
  const [{ status }, reason] = await Promise.all([install(), runJob()]);
  expect([status, reason]).toEqual([
    1,
    expect.stringContaining('rejects the pods of DaemonSet nvidia-virtual-preflight'),
  ]);
  expect(reason).toContain('Stay off the host.');
});

/** A new policy takes effect after some time. */
async function refusesHostPods(): Promise<void> {
  const spec = { hostPID: true, containers: [{ name: 'a', image: 'a' }] };
  const attempt = () =>
    api.request({
      method: 'POST',
      path: '/api/v1/namespaces/default/pods',
      query: { dryRun: 'All' },
      body: { metadata: { name: 'a' }, spec },
    });
  await until(async () => {
    try {
      await attempt();
      return false;
    } catch (error) {
      return (error as Error).message.includes('Stay off the host.');
    }
  }, 'the policy has taken effect');
}

test('PodSecurity of the namespace is known before anything is made', async () => {
  const args = ['label', 'namespace', NAMESPACE, 'pod-security.kubernetes.io/enforce=baseline'];
  await runCommand(kubernetesTool('kubectl'), ['--kubeconfig', plane.adminKubeconfig, ...args]);
  const { status, output } = await install();
  expect([status, output]).toEqual([
    1,
    expect.stringContaining('PodSecurity of namespace gpus enforces baseline'),
  ]);
});
