import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { eventually, until } from '@nvidia-virtual/service/testing/eventually';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { ControlPlane } from '../kubernetes/control-plane.js';
import { run } from '../kubernetes/usage/scene.js';
import { CHART, helm, type KubernetesObject } from './chart.js';

const BUILDING_TOOLS = 1800_000;
const PLUGIN = path.join(REPOSITORY, 'kubectl-plugin', 'dist', 'main.js');
const [NAMESPACE, RELEASE] = ['gpus', 'nvidia-virtual'];
const CORE = `/api/v1/namespaces/${NAMESPACE}`;
const PLANTED = ['redis-Horse4Battery', 'registry-Staple5', 'variable-Correct6', 'key-Material7'];
const PROBLEM = 'Node gpu-7 has no NVIDIA driver: install it.';

let plane: ControlPlane;
let api: ApiServer;
let directory: string;

/** The release on a cluster without kubelets, and with secrets in many places. */
beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'support-'));
  plane = await ControlPlane.start({ controllerManager: true });
  api = ApiServer.load(plane.adminKubeconfig);
  const annotations = {
    'nvidia-virtual/problems': JSON.stringify([PROBLEM]),
    'other.example/join-token': PLANTED[2],
  };
  const platform = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };
  const labels = { ...platform, 'nvidia-virtual/node': 'true' };
  await post('/api/v1/nodes', { metadata: { name: 'gpu-7', labels, annotations } });
  const place = ['--namespace', NAMESPACE, '--kubeconfig', plane.adminKubeconfig, '--no-hooks'];
  // A profile is a second DaemonSet of the same release.
  const set = `node.podAnnotations.note=${PLANTED[0]},node.profiles.small.slotsPerGpu=4`;
  const values = ['--set', set, '--create-namespace'];
  const { status, output } = await helm('install', RELEASE, CHART, ...place, ...values);
  expect([status, output]).toEqual([0, expect.anything()]);
  await plant();
}, BUILDING_TOOLS);
afterAll(async () => {
  api?.close();
  await plane?.stop();
  rmSync(directory, { recursive: true });
});

function post(place: string, body: object): Promise<KubernetesObject> {
  return api.request({ method: 'POST', path: place, body });
}

async function plant(): Promise<void> {
  const [redis, registry, variable, key] = PLANTED as [string, string, string, string];
  await api.request({
    method: 'PATCH',
    path: `${CORE}/secrets/nvidia-virtual-redis`,
    body: { stringData: { password: redis } },
    contentType: 'application/merge-patch+json',
  });
  const auths = { 'registry.example': { username: 'robot', password: registry } };
  await post(`${CORE}/secrets`, {
    metadata: { name: 'registry' },
    type: 'kubernetes.io/dockerconfigjson',
    stringData: { '.dockerconfigjson': JSON.stringify({ auths }) },
  });
  await post(`${CORE}/configmaps`, {
    metadata: { name: 'ours', labels: await labelsOf('daemonsets/nvidia-virtual-node') },
    data: {
      config: `url: redis://default:${redis}@host\npassword: ${variable}`,
      key: `-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----`,
    },
  });
  const env = [{ name: 'SOME_PASSWORD', value: variable }];
  await post(`${CORE}/pods`, {
    metadata: { name: 'ours', labels: await labelsOf('deployments/nvidia-virtual-webhook') },
    spec: {
      serviceAccountName: 'nvidia-virtual-webhook',
      containers: [{ name: 'a', image: 'a', env }],
    },
  });
  await post(`${CORE}/events`, {
    metadata: { name: 'failed', namespace: NAMESPACE },
    involvedObject: { kind: 'Pod', name: 'ours', namespace: NAMESPACE },
    reason: 'Failed',
    message: `the registry refused ${registry}, Authorization: Bearer ${variable}`,
  });
}

async function labelsOf(object: string): Promise<object> {
  const place = `/apis/apps/v1/namespaces/${NAMESPACE}/${object}`;
  return (await api.request<KubernetesObject>({ path: place })).metadata.labels;
}

/** Runs the plugin as this user; as the administrator by default. */
function plugin(args: readonly string[], kubeconfig = plane.adminKubeconfig) {
  const env = {
    ...process.env,
    PATH: `${path.dirname(kubernetesTool('kubectl'))}:${process.env['PATH']}`,
  };
  const place = ['--kubeconfig', kubeconfig];
  return run(process.execPath, [PLUGIN, ...args, ...place], '', env);
}

describe('kubectl gpu-usage doctor', () => {
  test('names what is wrong with the release and with each node, and fails', async () => {
    const { status, output, errors } = await until(async () => {
      const result = await plugin(['doctor']);
      return result.output.includes('node gpu-7') ? result : undefined;
    });
    expect([status, errors]).toEqual([1, expect.stringMatching(/^error: \d+ problems found\.\n$/)]);
    expect(output).toContain(`PROBLEM   cluster: Kubernetes v1.`);
    expect(output).toContain(`release ${RELEASE} in namespace ${NAMESPACE}`);
    expect(output).toContain('PROBLEM   node gpu-7');
  });

  test('shows what the device plugin found while it runs', async () => {
    const pod = await until(async () => {
      const labelSelector = 'app.kubernetes.io/component=node';
      const pods = await api.request<{ items: KubernetesObject[] }>({
        path: `${CORE}/pods`,
        query: { labelSelector },
      });
      return pods.items[0];
    });
    if (pod.spec.nodeName === undefined)
      await post(`${CORE}/pods/${pod.metadata.name}/binding`, {
        metadata: pod.metadata,
        target: { apiVersion: 'v1', kind: 'Node', name: 'gpu-7' },
      });
    const running = { image: 'a', imageID: '', ready: true, restartCount: 0 };
    const status = {
      phase: 'Running',
      containerStatuses: [{ name: 'device-plugin', ...running, state: { running: {} } }],
    };
    await api.request({
      method: 'PATCH',
      path: `${CORE}/pods/${pod.metadata.name}/status`,
      body: { status },
      contentType: 'application/strategic-merge-patch+json',
    });
    // No kubelet says that the node is ready, which a controller notices after a minute.
    const ready = { type: 'Ready', status: 'True', lastHeartbeatTime: new Date() };
    await api.request({
      method: 'PATCH',
      path: '/api/v1/nodes/gpu-7/status',
      body: { status: { conditions: [ready] } },
      contentType: 'application/strategic-merge-patch+json',
    });
    const { output } = await plugin(['doctor', 'gpu-7', '-o', 'json']);
    expect(JSON.parse(output)).toEqual([
      { subject: 'node gpu-7', facts: expect.anything(), problems: [PROBLEM] },
    ]);
    expect(await plugin(['doctor', 'gpu-8'])).toMatchObject({ status: 1 });
  });

  test('a user who may not see everything is told what is missing', async () => {
    const anna = plane.kubeconfig('anna');
    expect(await plugin(['doctor', '-n', NAMESPACE], anna)).toMatchObject({
      status: 1,
      errors: expect.stringContaining(`No nvidia-virtual was found in namespace ${NAMESPACE}`),
    });
    const subjects = [{ kind: 'User', name: 'anna', apiGroup: 'rbac.authorization.k8s.io' }];
    const roleRef = { apiGroup: subjects[0]?.apiGroup, kind: 'ClusterRole', name: 'view' };
    await post(`/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}/rolebindings`, {
      metadata: { name: 'anna' },
      subjects,
      roleRef,
    });
    // The API server notices the binding by its own watch.
    await eventually(async () => {
      const { output } = await plugin(['doctor', '-n', NAMESPACE], anna);
      expect(output).toContain('Not seen: nodes is forbidden: User "anna" cannot list');
    });
  });
});

describe('kubectl gpu-usage bundle', () => {
  const contentOf = async (file: string) => {
    const list = await runCommand('tar', ['-tzf', file]);
    const all = await runCommand('tar', ['-xzOf', file]);
    return { names: list.output.trim().split('\n'), text: all.output };
  };

  test('contains state, values, events and versions, and no secret that was planted', async () => {
    const file = path.join(directory, 'support.tar.gz');
    expect(await plugin(['bundle', file])).toEqual({
      status: 0,
      output: `${file}\n`,
      errors: '',
    });
    const { names, text } = await contentOf(file);
    for (const kind of ['pods', 'events', 'nodes', 'configmaps', 'networkpolicies', 'node-events'])
      expect(names).toContain(`objects/${kind}.json`);
    expect(names).toEqual(expect.arrayContaining(['README.txt', 'doctor.txt', 'versions.json']));
    expect(text).toContain('slotsPerGpu: 10');
    expect(text).toContain('the registry refused REDACTED');
    for (const secret of PLANTED)
      for (const form of [secret, Buffer.from(secret).toString('base64')])
        expect([secret, text.includes(form)]).toEqual([secret, false]);
    expect(text).not.toMatch(/"kind": "Secret"|PRIVATE KEY/);
  });

  test('without the right to read Secrets, it hides what looks like one, and says so', async () => {
    const file = path.join(directory, 'of-anna.tar.gz');
    const anna = plane.kubeconfig('anna');
    const { status, errors } = await plugin(['bundle', file, '-n', NAMESPACE], anna);
    expect([status, errors]).toEqual([0, '']);
    const { text } = await contentOf(file);
    expect(text).toContain('Secrets of the namespace could not be read');
    expect(text).not.toContain(PLANTED[2]);
    expect(text).not.toContain(PLANTED[3]);
  });

  test('is readable for its owner only, and overwrites no file', async () => {
    const file = path.join(directory, 'support.tar.gz');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const before = readFileSync(file);
    expect(await plugin(['bundle', file])).toMatchObject({
      status: 1,
      errors: expect.stringContaining(`The archive ${file} cannot be written: file already exists`),
    });
    expect(readFileSync(file)).toEqual(before);
  });
});
