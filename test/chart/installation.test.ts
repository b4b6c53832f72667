import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ProcessUnderTest } from '@nvidia-virtual/device-plugin/testing/process-under-test';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { parse } from 'yaml';
import { ControlPlane } from '../kubernetes/control-plane.js';
import { CHART, helm, type KubernetesObject, render } from './chart.js';

const BUILDING_TOOLS = 1800_000;
const COMMAND = path.join(REPOSITORY, 'release-hooks', 'bin', 'release-hooks.js');
const [NAMESPACE, RELEASE] = ['gpus', 'nvidia-virtual'];

let plane: ControlPlane;
let directory: string;

/** There is no kubelet, so no pod runs: this tests how the API server handles the objects. */
beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'installation-'));
  plane = await ControlPlane.start({ controllerManager: true });
  await install('install', '--create-namespace');
}, BUILDING_TOOLS);

afterAll(async () => {
  await plane?.stop();
  rmSync(directory, { recursive: true });
});

async function install(verb: string, ...flags: readonly string[]): Promise<void> {
  const place = ['--namespace', NAMESPACE, '--kubeconfig', plane.adminKubeconfig, '--no-hooks'];
  const { status, output } = await helm(
    verb,
    RELEASE,
    ...(verb === 'uninstall' ? [] : [CHART]),
    ...place,
    ...flags,
  );
  expect([status, output]).toEqual([0, expect.anything()]);
}

async function kubectl(kubeconfig: string, ...args: readonly string[]): Promise<string> {
  return (
    await runCommand(kubernetesTool('kubectl'), ['--kubeconfig', kubeconfig, ...args])
  ).output.trim();
}

const admin = (...args: readonly string[]) => kubectl(plane.adminKubeconfig, ...args);

/** The flag of a command that acts with the rights of an administrator. */
const asAdmin = () => ['--kubeconfig', plane.adminKubeconfig];

/** Sets the level of PodSecurity in our namespace. */
const enforce = (level: 'privileged' | 'restricted') =>
  admin(
    ...['label', 'namespace', NAMESPACE, '--overwrite'],
    `pod-security.kubernetes.io/enforce=${level}`,
  );

async function get(...args: readonly string[]): Promise<KubernetesObject> {
  return JSON.parse(await admin('-n', NAMESPACE, 'get', ...args, '-o', 'json'));
}

/** A kubeconfig of a service account, as in its pods. */
async function as(account: string, ...flags: readonly string[]): Promise<string> {
  return plane.kubeconfigFor(
    await admin('-n', NAMESPACE, 'create', 'token', account, ...flags),
    NAMESPACE,
  );
}

function command(...args: readonly string[]): Promise<{ status: number; output: string }> {
  return runCommand(process.execPath, [COMMAND, ...args, '--namespace', NAMESPACE]);
}

/** Includes the hooks of the chart, unlike `install`. The caller runs their Jobs. */
async function helmWithHooks(
  verb: string,
  ...args: readonly string[]
): Promise<{ status: number; output: string }> {
  return helm(verb, RELEASE, ...args, '--namespace', NAMESPACE, ...asAdmin());
}

/**
 * Acts as the kubelet for the pod of a Job, without a container: runs its command with the rights
 * of its account and reports the result. @returns the output
 */
async function runJob(name: string): Promise<string> {
  const { metadata, spec } = await until(async () => {
    const { items } = await get('pods', '-l', `job-name=${name}`);
    return items.find(({ status }: KubernetesObject) => status.phase === 'Pending');
  });
  const args = spec.containers[0].command.slice(1);
  const { status, output } = await runCommand(process.execPath, [
    COMMAND,
    ...args,
    '--kubeconfig',
    await as(spec.serviceAccountName),
  ]);
  const patch = JSON.stringify({ status: { phase: status === 0 ? 'Succeeded' : 'Failed' } });
  await admin(
    '-n',
    NAMESPACE,
    'patch',
    'pod',
    metadata.name,
    '--subresource',
    'status',
    '--patch',
    patch,
  );
  return output;
}

async function apply(object: object): Promise<string> {
  const file = path.join(directory, 'object.json');
  writeFileSync(file, JSON.stringify(object));
  return admin('apply', '-f', file);
}

/** Acts as the scheduler. */
async function bind(pod: string, to: string): Promise<void> {
  const target = { apiVersion: 'v1', kind: 'Node', name: to };
  const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name: pod }, target };
  const file = path.join(directory, 'binding.json');
  writeFileSync(file, JSON.stringify(body));
  await admin('create', '--raw', `/api/v1/namespaces/${NAMESPACE}/pods/${pod}/binding`, '-f', file);
}

const LABELS = {
  'nvidia-virtual/node': 'true',
  'kubernetes.io/arch': 'amd64',
  'kubernetes.io/os': 'linux',
};
const node = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: LABELS },
});

describe('the password of Redis', () => {
  const flags = () => [
    '--secret',
    'nvidia-virtual-redis',
    '--key',
    'password',
    '--configuration',
    path.join(directory, 'redis.conf'),
  ];
  const stored = async () =>
    Buffer.from((await get('secret', 'nvidia-virtual-redis')).data.password, 'base64').toString();

  test('is generated once, by the account of Redis, and Redis reads it', async () => {
    const kubeconfig = await as('nvidia-virtual-redis');
    expect(
      await command('redis-password', ...flags(), '--make', '--kubeconfig', kubeconfig),
    ).toMatchObject({ status: 0 });
    const password = await stored();
    expect(password.length).toBeGreaterThanOrEqual(40);
    const written = readFileSync(path.join(directory, 'redis.conf'), 'utf8');
    const bytes = [...written.matchAll(/\\x([0-9a-f]{2})/g)].map((match) =>
      Number.parseInt(match[1] as string, 16),
    );
    expect(Buffer.from(bytes).toString()).toBe(password);
    expect(
      await command('redis-password', ...flags(), '--make', '--kubeconfig', kubeconfig),
    ).toMatchObject({ status: 0 });
    expect(await stored()).toBe(password);
  });

  test('survives an upgrade', async () => {
    const password = await stored();
    await install('upgrade', '--set', 'logLevel=debug');
    expect(await stored()).toBe(password);
  });

  test('is required if an external Redis is used', async () => {
    await admin('-n', NAMESPACE, 'create', 'secret', 'generic', 'empty');
    const { status, output } = await command(
      'redis-password',
      ...flags(),
      '--secret',
      'empty',
      ...asAdmin(),
    );
    expect([status, output]).toEqual([
      1,
      expect.stringContaining('Secret empty has nothing under the key password'),
    ]);
  });
});

test('certificates written by processes survive an upgrade', async () => {
  const caBundle = readFileSync(plane.authority.certificateFile).toString('base64');
  const patch = JSON.stringify({
    webhooks: [{ name: 'pods.nvidia-virtual.io', clientConfig: { caBundle } }],
  });
  const webhook = await as('nvidia-virtual-webhook');
  expect(
    await kubectl(webhook, 'patch', 'mutatingwebhookconfiguration', RELEASE, '-p', patch),
  ).toContain('patched');
  await install('upgrade', '--set', 'logLevel=info');
  const { webhooks } = await get('mutatingwebhookconfiguration', RELEASE);
  expect(webhooks[0].clientConfig.caBundle).toBe(caBundle);
});

describe('accounts', () => {
  test.each([
    ['webhook', ['get', 'secret/nvidia-virtual-webhook'], 'yes'],
    ['webhook', ['get', 'secret/nvidia-virtual-redis'], 'no'],
    ['webhook', ['patch', 'mutatingwebhookconfigurations/other'], 'no'],
    ['usage-api', ['update', 'secret/nvidia-virtual-usage-api'], 'yes'],
    ['usage-api', ['patch', 'apiservices/v1alpha1.usage.nvidia-virtual.io'], 'yes'],
    ['usage-api', ['patch', 'apiservices/v1.apps'], 'no'],
    ['usage-api', ['create', 'subjectaccessreviews'], 'yes'],
    ['usage-api', ['create', 'tokenreviews'], 'no'],
    ['scheduler', ['update', 'leases/nvidia-virtual-scheduler'], 'yes'],
    ['scheduler', ['create', 'pods', '--subresource', 'binding', '--all-namespaces'], 'yes'],
    ['scheduler', ['list', 'poddisruptionbudgets', '--all-namespaces'], 'yes'],
    ['scheduler', ['get', 'secrets'], 'no'],
    ['node', ['list', 'pods', '--all-namespaces'], 'yes'],
    ['node', ['create', 'events', '-n', 'default'], 'yes'],
    ['node', ['get', 'secrets'], 'no'],
    ['node', ['create', 'pods'], 'no'],
    ['redis', ['list', 'secrets'], 'no'],
  ])('%s: %j is %s', async (account, what, answer) => {
    const user = `system:serviceaccount:${NAMESPACE}:nvidia-virtual-${account}`;
    const [verb = '', resource = '', ...flags] = what;
    const asked = ['auth', 'can-i', verb, resource, ...flags, '--as', user];
    expect(
      (await admin(...(flags.includes('-n') ? asked : ['-n', NAMESPACE, ...asked])))
        .split('\n')
        .at(-1),
    ).toBe(answer);
  });
});

describe('the account of a node', () => {
  let own: string;
  beforeAll(async () => {
    await apply(node('one'));
    await apply(node('two'));
    const pod = {
      metadata: { name: 'plugin', namespace: NAMESPACE },
      spec: { nodeName: 'one', containers: [{ name: 'a', image: 'a' }] },
    };
    await apply({
      apiVersion: 'v1',
      kind: 'Pod',
      ...pod,
      spec: { ...pod.spec, serviceAccountName: 'nvidia-virtual-node' },
    });
    own = await as(
      'nvidia-virtual-node',
      '--bound-object-kind',
      'Pod',
      '--bound-object-name',
      'plugin',
    );
    // Policies take effect after a moment; until then this is allowed.
    await until(async () =>
      (
        await kubectl(own, 'label', 'node', 'two', 'x=y', '--overwrite', '--dry-run=server')
      ).includes('denied')
        ? true
        : undefined,
    );
  }, 60_000);

  const annotate = (name: string, text: string) =>
    kubectl(own, 'annotate', 'node', name, '--overwrite', text, '--dry-run=server');

  test('may annotate its own node', async () => {
    expect(await annotate('one', 'nvidia-virtual/something={}')).toContain('node/one annotated');
  });

  test.each([
    ['two', 'nvidia-virtual/something={}', 'may change its own node only'],
    ['one', 'other/annotation=x', 'only annotations of a node that begin with nvidia-virtual/'],
  ])('may do nothing else: %s %s', async (name, text, sentence) => {
    expect(await annotate(name, text)).toContain(sentence);
  });

  test.each([
    { finalizers: ['example.com/stays'] },
    { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'two', uid: 'of-nobody' }] },
  ])('may not set owner references on its own node: %j', async (metadata) => {
    expect(
      await kubectl(own, 'patch', 'node', 'one', '--patch', JSON.stringify({ metadata })),
    ).toContain('only annotations');
  });

  /** The API server's refusal, or empty. kubectl would need the right to read the status. */
  const patchStatus = async (name: string, status: object) => {
    const api = ApiServer.load(own);
    const contentType = 'application/strategic-merge-patch+json';
    const path = `/api/v1/nodes/${name}/status`;
    try {
      await api.request({ method: 'PATCH', path, body: { status }, contentType });
      return '';
    } catch (error) {
      return (error as Error).message;
    } finally {
      api.close();
    }
  };
  const condition = (type: string) => ({
    conditions: [{ type, status: 'True', reason: 'Test', message: 'a test' }],
  });

  test('may set the condition of a lost GPU on its own node', async () => {
    expect(await patchStatus('two', condition('NvidiaVirtualGpuLost'))).toContain(
      'may change its own node only',
    );
    expect(await patchStatus('one', condition('NvidiaVirtualGpuLost'))).toBe('');
    const { status } = await get('node', 'one');
    expect(status.conditions).toContainEqual(
      expect.objectContaining({ type: 'NvidiaVirtualGpuLost', status: 'True' }),
    );
  });

  test.each([
    condition('Ready'),
    { capacity: { cpu: '1000' } },
    { allocatable: { 'nvidia-virtual/gpu': '1000' } },
    { addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] },
    { nodeInfo: { kubeletVersion: 'v9' } },
    { daemonEndpoints: { kubeletEndpoint: { Port: 1 } } },
  ])('may change nothing else of the status of its own node: %j', async (status) => {
    expect(await patchStatus('one', status)).toContain('only the condition NvidiaVirtualGpuLost');
  });

  test('may not label or taint its own node', async () => {
    expect(await kubectl(own, 'label', 'node', 'one', 'x=y')).toContain('only annotations');
    expect(await kubectl(own, 'taint', 'node', 'one', 'x=y:NoSchedule')).toContain(
      'only annotations',
    );
  });
});

test('kube-scheduler starts with configuration and account, and becomes leader', async () => {
  const { data } = await get('configmap', 'nvidia-virtual-scheduler');
  const configuration = {
    ...parse(data['configuration.yaml']),
    clientConnection: { kubeconfig: await as('nvidia-virtual-scheduler') },
  };
  const file = path.join(directory, 'scheduler.json');
  writeFileSync(file, JSON.stringify(configuration));
  const daemon = plane.startDaemon('second-scheduler', {
    program: kubernetesTool('kube-scheduler'),
    args: ['--config', file, '--secure-port', '0'],
  });
  const holder = await until(async () => {
    const { items } = await get('lease');
    return items.find(
      ({ metadata }: KubernetesObject) => metadata.name === 'nvidia-virtual-scheduler',
    )?.spec.holderIdentity;
  });
  expect(holder).toEqual(expect.any(String));
  await daemon.stop();
});

test('our pod leaves a node whose driver the GPU Operator replaces, and comes back', async () => {
  const name = 'upgraded';
  await apply(node(name));
  /** Waits for the pod that the DaemonSet makes for the node. */
  const untilPod = () =>
    until(async () => {
      const { items } = await get('pods', '-l', 'app.kubernetes.io/component=node');
      return items.find(
        ({ metadata, spec }: KubernetesObject) =>
          !metadata.deletionTimestamp && JSON.stringify(spec.affinity).includes(`["${name}"]`),
      );
    });
  const label = 'nvidia.com/gpu-driver-upgrade-state';
  const state = (value: string) => admin('label', 'node', name, `${label}=${value}`, '--overwrite');
  for (const value of ['pod-restart-required', 'validation-required', 'upgrade-failed']) {
    await state('drain-required');
    const pod = (await untilPod()).metadata.name;
    await bind(pod, name);
    await state(value);
    await until(async () => {
      const { items } = await get('pods', '--field-selector', `metadata.name=${pod}`);
      return items.every(({ metadata }: KubernetesObject) => metadata.deletionTimestamp);
    });
    await admin('-n', NAMESPACE, 'delete', 'pod', pod, '--force', '--grace-period=0');
  }
  await state('uncordon-required');
  await untilPod();
  await admin('delete', 'node', name);
});

describe('the check after an installation', () => {
  const flags = ['--release', RELEASE, '--patience', '30'];

  test('succeeds if Kubernetes created the pods, and else reports what is missing', async () => {
    expect(await command('check-install', ...flags, ...asAdmin())).toMatchObject({
      status: 0,
      output: '',
    });
    const { status, output } = await command(
      'check-install',
      ...flags,
      '--patience',
      '1',
      '--extent',
      'ready',
      ...asAdmin(),
    );
    expect([status, output]).toEqual([
      1,
      expect.stringMatching(
        /Not everything runs .*: .*nvidia-virtual-webhook \(0 of 2 pods ready\)/,
      ),
    ]);
  });

  test.each([
    ['before it began', -600_000, 'Not everything runs'],
    ['since', 60_000, 'the pods of DaemonSet nvidia-virtual-node: of something'],
  ])('reports what was refused %s', async (_, age, sentence) => {
    const object = { kind: 'DaemonSet', namespace: NAMESPACE, name: 'nvidia-virtual-node' };
    const at = new Date(Date.now() + age).toISOString().replace(/\.\d+/, '');
    const event = {
      reason: 'FailedCreate',
      type: 'Warning',
      message: 'Error creating: of something',
      firstTimestamp: at,
      lastTimestamp: at,
    };
    const metadata = { name: 'refused', namespace: NAMESPACE };
    await apply({ apiVersion: 'v1', kind: 'Event', metadata, involvedObject: object, ...event });
    const impatient = [...flags, '--patience', '1', '--extent', 'ready', ...asAdmin()];
    const { status, output } = await command('check-install', ...impatient);
    await admin('-n', NAMESPACE, 'delete', 'event', 'refused');
    expect([status, output]).toEqual([1, expect.stringContaining(sentence)]);
  });

  test('reports the missing label if PodSecurity refuses the pods', async () => {
    await enforce('restricted');
    await apply(node('three'));
    const { status, output } = await command('check-install', ...flags, ...asAdmin());
    expect([status, output]).toEqual([
      1,
      expect.stringContaining('the pods of DaemonSet nvidia-virtual-node:'),
    ]);
    expect(output).toContain(
      `kubectl label namespace ${NAMESPACE} pod-security.kubernetes.io/enforce=privileged ` +
        `--overwrite`,
    );
  });
});

describe('an uninstallation', () => {
  const resources = { limits: { 'nvidia-virtual/gpu': '1' } };
  const pod = (name: string, nodeName?: string) => ({
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' } },
    spec: {
      schedulerName: 'other',
      ...(nodeName && { nodeName }),
      containers: [{ name: 'a', image: 'a', resources }],
    },
  });

  test('is refused while a pod uses a GPU, and names the pod', async () => {
    // The webhook does not run here.
    await admin('delete', 'mutatingwebhookconfiguration,validatingwebhookconfiguration', RELEASE);
    const check = () =>
      command('check-uninstall', '--release', RELEASE, '--revision', '3', ...asAdmin());
    await apply(pod('waits'));
    expect(await check()).toMatchObject({ status: 0 });
    await apply(pod('computes', 'one'));
    const { status, output } = await check();
    expect([status, output]).toEqual([
      1,
      expect.stringContaining(
        '1 pod is still on a node with nvidia-virtual/gpu: default/computes.',
      ),
    ]);
    await admin('delete', 'pod', 'computes', '--force', '--grace-period=0');
    expect(await check()).toMatchObject({ status: 0 });
  });

  /** The work of the cleaning DaemonSet's pods on node one, with their rights. */
  async function startCleaner(...flags: readonly string[]) {
    const host = mkdtempSync(path.join(directory, 'node-'));
    const ours = path.join(host, 'nvidia-virtual');
    mkdirSync(ours);
    const place = [
      '--directory',
      ours,
      '--kubelet-root',
      path.join(host, 'kubelet'),
      '--cgroup',
      path.basename(host),
    ];
    const release = [
      '--daemon-set',
      'nvidia-virtual-node',
      '--namespace',
      NAMESPACE,
      '--node',
      'one',
    ];
    const program = path.join(REPOSITORY, 'device-plugin', 'bin', 'device-plugin.js');
    const kubeconfig = await as('nvidia-virtual-cleaning');
    const cleaner = new ProcessUnderTest([
      process.execPath,
      program,
      'remove',
      ...place,
      ...release,
      '--kubeconfig',
      kubeconfig,
      ...flags,
    ]);
    return { cleaner, isClean: () => !existsSync(ours) };
  }

  test('removes nothing if the hooks were applied as ordinary objects', async () => {
    await enforce('privileged');
    const file = path.join(directory, 'rendered.yaml');
    writeFileSync(file, (await render({ namespace: NAMESPACE })).text);
    const hooks = [
      '-n',
      NAMESPACE,
      '-l',
      'app.kubernetes.io/component in (cleaning,finish-uninstall)',
    ];
    await admin('apply', '-f', file, ...hooks);
    await admin('annotate', 'node', 'one', 'nvidia-virtual/inventory={}');
    expect(await runJob('nvidia-virtual-finish-uninstall')).toContain(
      'the DaemonSet nvidia-virtual-node in namespace gpus still serves the nodes',
    );
    expect((await get('node', 'one')).metadata.annotations).toMatchObject({
      'nvidia-virtual/inventory': '{}',
    });

    const mistaken = await startCleaner();
    await until(async () =>
      mistaken.cleaner.output.includes('Nothing is removed from node one, because the DaemonSet')
        ? true
        : undefined,
    );
    // Without a kubelet, a pod on a node never ends.
    const { uid } = (await get('daemonset', 'nvidia-virtual-node')).metadata;
    const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'nvidia-virtual-node', uid };
    const metadata = { name: 'serves', namespace: NAMESPACE, ownerReferences: [owner] };
    await apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec: { nodeName: 'one', containers: [{ name: 'a', image: 'a' }] },
    });
    await admin('-n', NAMESPACE, 'delete', 'daemonset', 'nvidia-virtual-node');
    const early = await startCleaner('--patience', '1s');
    expect(await early.cleaner.exited()).not.toBe(0);
    expect([early.isClean(), early.cleaner.output]).toEqual([
      false,
      expect.stringContaining('pod gpus/serves still runs on this node'),
    ]);
    await admin('-n', NAMESPACE, 'delete', 'pod', 'serves', '--force', '--grace-period=0');
    const meant = await startCleaner();
    expect([await meant.cleaner.exited(), meant.isClean()]).toEqual([0, true]);
    await mistaken.cleaner.end();
    expect(mistaken.isClean()).toBe(false);
    await admin(
      'delete',
      'daemonsets,jobs,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings',
      ...hooks,
    );
    await install('upgrade');
  });

  test('removes everything that was created at run time', async () => {
    await admin('annotate', 'node', 'one', 'nvidia-virtual/inventory={}', 'other=kept');
    await install('uninstall', '--wait');
    const cleaning = { labels: { name: 'cleaning' } };
    const template = {
      metadata: cleaning,
      spec: { nodeName: 'one', containers: [{ name: 'a', image: 'a' }] },
    };
    const selector = { matchLabels: cleaning.labels };
    const daemonSet = {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'cleaning', namespace: NAMESPACE },
    };
    await enforce('privileged');
    await apply({
      ...daemonSet,
      spec: {
        selector,
        template: {
          ...template,
          spec: { ...template.spec, nodeName: undefined, nodeSelector: { none: 'here' } },
        },
      },
    });
    const flags = [
      '--served-by',
      'nvidia-virtual-node',
      '--daemon-set',
      'cleaning',
      '--lease',
      'nvidia-virtual-scheduler',
      '--patience',
      '30',
      ...asAdmin(),
    ];
    expect(await command('finish-uninstall', ...flags)).toMatchObject({ status: 0 });
    expect((await get('node', 'one')).metadata.annotations).toEqual(
      expect.not.objectContaining({ 'nvidia-virtual/inventory': '{}' }),
    );
    expect((await get('node', 'one')).metadata.annotations).toMatchObject({ other: 'kept' });
    const all =
      'deployments,daemonsets,statefulsets,secrets,configmaps,services,' +
      'leases,roles,rolebindings,networkpolicies,poddisruptionbudgets';
    const names = (await admin('-n', NAMESPACE, 'get', all, '-o', 'name'))
      .split('\n')
      .filter((name) => name.includes('nvidia-virtual'));
    expect(names).toEqual([]);
    const cluster =
      'clusterroles,clusterrolebindings,apiservices,validatingadmissionpolicies,' +
      'validatingadmissionpolicybindings,priorityclasses';
    expect(
      (await admin('get', cluster, '-o', 'name'))
        .split('\n')
        .filter((name) => name.includes('nvidia-virtual')),
    ).toEqual([]);
  });

  test('if forced while a pod uses a GPU, removes all objects of the checks', async () => {
    // The webhook is not available again yet.
    await apply(pod('computes', 'one'));
    await install('install');
    await enforce('restricted');
    await apply(node('four'));
    const [upgrade] = await Promise.all([
      helmWithHooks('upgrade', CHART),
      runJob('nvidia-virtual-install-check'),
    ]);
    expect([upgrade.status, upgrade.output]).toEqual([1, expect.stringContaining('post-upgrade')]);
    await enforce('privileged');
    const tests = ['nvidia-virtual-test', 'nvidia-virtual-test-slot'];
    for (const name of tests)
      await admin('-n', NAMESPACE, 'run', name, '--image', 'a', '--restart', 'Never');

    const [refused, reason] = await Promise.all([
      helmWithHooks('uninstall'),
      runJob('nvidia-virtual-uninstall-check'),
    ]);
    expect([refused.status, reason]).toEqual([
      1,
      expect.stringContaining('uninstall.withRunningPods=true'),
    ]);
    const ours = async () => {
      const names = await admin(
        '-n',
        NAMESPACE,
        'get',
        'jobs,pods,serviceaccounts,roles,rolebindings',
        '-o',
        'name',
      );
      return names
        .split('\n')
        .filter(
          (name) =>
            name.includes('nvidia-virtual') &&
            !/-(node|redis|scheduler|usage-api|webhook)/.test(name),
        );
    };
    const left = ['install-check', 'uninstall-check'].map((name) =>
      expect.stringMatching(`^job.batch/nvidia-virtual-${name}$`),
    );
    expect(await ours()).toEqual(
      expect.arrayContaining([...left, ...tests.map((name) => `pod/${name}`)]),
    );

    await install('upgrade', '--set', 'uninstall.withRunningPods=true,uninstall.cleanNodes=false');
    const jobs = ['nvidia-virtual-uninstall-check', 'nvidia-virtual-finish-uninstall'];
    const [forced] = await Promise.all([helmWithHooks('uninstall'), ...jobs.map(runJob)]);
    expect([forced.status, forced.output]).toEqual([0, expect.anything()]);
    // Dependents are deleted a moment after their owner.
    await until(async () => ((await ours()).length === 0 ? true : undefined));
    const cluster = await admin('get', 'clusterroles,clusterrolebindings', '-o', 'name');
    expect(cluster.split('\n').filter((name) => name.includes('nvidia-virtual'))).toEqual([]);
    await admin('delete', 'pod', 'computes', '--force', '--grace-period=0');
  });
});
