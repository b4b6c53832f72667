import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { V1Pod, V1Secret } from '@kubernetes/client-node';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { ANNOTATION, SCHEDULER_NAME } from '@nvidia-virtual/kube-common/names';
import { webhookConfigurations } from '@nvidia-virtual/scheduler-ext/testing/webhook-configurations';
import { WebhookService, writersOf } from '@nvidia-virtual/scheduler-ext/webhook/webhook-service';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import { ControlPlane } from '../control-plane.js';
import { freePorts } from '../ports.js';
import { ClusterUnderTest, MERGE, refusalOf } from './cluster-under-test.js';
import { container, gpu, inventory, pod } from './objects.js';

const DIALECTS = ['hami'] as const;

/** The webhook with the rights of the chart, called by a real API server. */
const NAMES = { namespace: 'nvidia-virtual', release: 'nvidia-virtual' };
const WRITERS = writersOf(NAMES);
const WEBHOOK = 'system:serviceaccount:nvidia-virtual:nvidia-virtual-webhook';
const SECRET = '/api/v1/namespaces/nvidia-virtual/secrets/nvidia-virtual-webhook';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1';
const PODS = '/api/v1/namespaces/default/pods';

let plane: ControlPlane;
let cluster: ClusterUnderTest;
let webhook: WebhookService;
let port: number;
let http: number;

function startWebhook(at = port, httpAt = http): Promise<WebhookService> {
  const [listen, health] = [at, httpAt].map((one) => ({ host: '127.0.0.1', port: one })) as [
    { host: string; port: number },
    never,
  ];
  const kubeconfig = plane.kubeconfig(WEBHOOK);
  const options = {
    ...NAMES,
    kubeconfig,
    listen,
    host: ['127.0.0.1'],
    http: health,
    logLevel: 'info' as const,
    certificateDirectory: undefined,
    clientAuthority: undefined,
    slotMemory: 2 * 2 ** 30,
    slotCores: 10,
    slotsPerGpu: 10,
    translate: DIALECTS,
  };
  return WebhookService.start(options, pino({ level: 'silent' }));
}

async function readiness(
  at = http,
): Promise<{ ready: boolean; notReady?: Record<string, string> }> {
  return (await fetch(`http://127.0.0.1:${at}/readyz`)).json() as Promise<{ ready: boolean }>;
}

async function post(path: string, body: object): Promise<void> {
  await cluster.api.request({ method: 'POST', path, body });
}

/** The rights of the chart's ClusterRole and Role. */
async function allowWebhook(): Promise<void> {
  const rbac = 'rbac.authorization.k8s.io';
  const rules = [
    {
      apiGroups: [''],
      resources: ['secrets'],
      resourceNames: ['nvidia-virtual-webhook'],
      verbs: ['get', 'update'],
    },
    {
      apiGroups: ['admissionregistration.k8s.io'],
      resources: ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'],
      resourceNames: ['nvidia-virtual'],
      verbs: ['get', 'patch'],
    },
  ];
  await post(`/apis/${rbac}/v1/clusterroles`, {
    kind: 'ClusterRole',
    metadata: { name: 'webhook' },
    rules,
  });
  await bindRole('webhook', WEBHOOK);
}

async function bindRole(role: string, user: string): Promise<void> {
  const rbac = 'rbac.authorization.k8s.io';
  const subjects = [{ apiGroup: rbac, kind: 'User', name: user }];
  const metadata = { name: `${role.replace(':', '-')}-${user.replaceAll(':', '-')}` };
  const roleRef = { apiGroup: rbac, kind: 'ClusterRole', name: role };
  await post(`/apis/${rbac}/v1/clusterrolebindings`, {
    kind: 'ClusterRoleBinding',
    metadata,
    roleRef,
    subjects,
  });
}

function as(user: string): ApiServer {
  return ApiServer.load(plane.kubeconfig(user));
}

beforeAll(async () => {
  plane = await ControlPlane.start();
  cluster = new ClusterUnderTest(plane.adminKubeconfig);
  [port, http] = (await freePorts(2)) as [number, number];
  await post('/api/v1/namespaces', { kind: 'Namespace', metadata: { name: 'nvidia-virtual' } });
  await allowWebhook();
  await bindRole('system:kube-scheduler', WRITERS.scheduler);
  await bindRole('cluster-admin', WRITERS.plugin);
  webhook = await startWebhook();
});
afterAll(async () => {
  await webhook?.end();
  cluster?.api.close();
  await plane?.stop();
});

test('it is not ready, with a reason, until its objects exist', async () => {
  await until(
    async () =>
      (await readiness()).notReady?.['certificate']?.includes('nvidia-virtual-webhook') ?? false,
    'it has tried',
  );
  // As in the chart: the chart owns the Secret, the webhook its content.
  await post('/api/v1/namespaces/nvidia-virtual/secrets', {
    kind: 'Secret',
    type: 'Opaque',
    metadata: { name: 'nvidia-virtual-webhook' },
  });
  await until(
    async () =>
      (await readiness()).notReady?.['certificate']?.startsWith('There is no Mut') ?? false,
    'it misses the configurations',
  );
  const client = (path: string) => ({ url: `https://127.0.0.1:${port}${path}` });
  for (const configuration of webhookConfigurations({
    name: 'nvidia-virtual',
    writers: WRITERS,
    dialects: DIALECTS,
    client,
  })) {
    const { kind } = configuration as { kind: string };
    await post(`${CONFIGURATIONS}/${kind.toLowerCase()}s`, configuration);
  }
  await until(async () => (await readiness()).ready, 'it is ready');
  // The API server notices it by its own watch.
  await until(async () => {
    const made = await cluster
      .create(pod('probe', { spec: { schedulerName: 'default-scheduler' } }))
      .catch(() => undefined);
    await cluster.removePods();
    return made?.spec?.schedulerName === SCHEDULER_NAME;
  }, 'it is asked');
});

test('an idle connection outlives the 90 s after which the API server would close it', async () => {
  const kept = await new Promise<string>((resolve, reject) => {
    const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
    const answered = ({ headers }: IncomingMessage) => {
      resolve(String(headers['keep-alive']));
      agent.destroy();
    };
    request({ host: '127.0.0.1', port, method: 'POST', path: '/validate', agent }, answered)
      .on('error', reject)
      .end('{}');
  });
  expect(Number(/^timeout=(\d+)$/.exec(kept)?.[1])).toBeGreaterThan(90);
});

describe('a pod that requests slots', () => {
  afterEach(() => cluster.removePods());

  test('gets our scheduler, and its defaults are recorded', async () => {
    const { spec, metadata } = await cluster.create(
      pod('one', { spec: { schedulerName: 'default-scheduler' } }),
    );
    expect([spec?.schedulerName, metadata?.annotations]).toEqual([
      SCHEDULER_NAME,
      { 'nvidia-virtual/gpus': '1', 'nvidia-virtual/mode': 'exclusive' },
    ]);
  });

  test('only in an init container is one, too', async () => {
    const spec = {
      schedulerName: 'default-scheduler',
      containers: [container('main', 0)],
      initContainers: [container('prepare', 1)],
    };
    expect((await cluster.create(pod('one', { spec }))).spec?.schedulerName).toBe(SCHEDULER_NAME);
  });

  test('keeps the values of its author: another scheduler, a node, other values', async () => {
    const annotations = { 'nvidia-virtual/gpus': '1', 'nvidia-virtual/mode': 'concurrent' };
    const other = await cluster.create(
      pod('one', { slots: 2, annotations, spec: { schedulerName: 'other' } }),
    );
    expect([other.spec?.schedulerName, other.metadata?.annotations]).toEqual([
      'other',
      annotations,
    ]);
    const placed = await cluster.create(
      pod('two', { spec: { schedulerName: 'default-scheduler', nodeName: 'nowhere' } }),
    );
    expect(placed.spec?.schedulerName).toBe('default-scheduler');
  });

  test('by memory gets its slots, and a quota counts them', async () => {
    const quotas = '/api/v1/namespaces/default/resourcequotas';
    const hard = { 'requests.nvidia-virtual/gpu': '6' };
    const body = { metadata: { name: 'slots' }, spec: { hard } };
    await cluster.api.request({ method: 'POST', path: quotas, body });
    // There is no controller that does this.
    const used = { 'requests.nvidia-virtual/gpu': '0' };
    await cluster.api.request({
      method: 'PATCH',
      path: `${quotas}/slots/status`,
      body: { status: { hard, used } },
      contentType: MERGE,
    });
    // The API server notices the quota by its own watch.
    await until(async () => {
      const tooMany = cluster.create(pod('too-many', { slots: 7 }));
      const refusal = await refusalOf(tooMany).catch(() => '');
      if (refusal === '') await cluster.delete('too-many');
      return refusal.includes('exceeded quota');
    }, 'the quota counts');
    const asking = (name: string, annotations: Record<string, string>) =>
      cluster.create(
        pod(name, { slots: 0, annotations, spec: { schedulerName: 'default-scheduler' } }),
      );
    const size = { 'nvidia-virtual/memory': '8Gi', 'nvidia-virtual/cores': '20' };
    const { spec } = await asking('one', size);
    expect([spec?.schedulerName, spec?.containers[0]?.resources]).toEqual([
      SCHEDULER_NAME,
      { limits: { 'nvidia-virtual/gpu': '4' }, requests: { 'nvidia-virtual/gpu': '4' } },
    ]);
    expect(await refusalOf(asking('two', size))).toMatch(/exceeded quota|insufficient quota/);
    await asking('three', { 'nvidia-virtual/memory': 'main=3Gi' });
    await cluster.api.request({ method: 'DELETE', path: `${quotas}/slots` });
  });

  test("in HAMi's words gets our slots, and is refused without memory", async () => {
    // Kubernetes looks for the class before it asks a webhook.
    const runtime = { metadata: { name: 'nvidia' }, handler: 'nvidia' };
    await post('/apis/node.k8s.io/v1/runtimeclasses', runtime);
    const asking = (limits: Record<string, string>, spec: Partial<V1Pod['spec']> = {}) =>
      cluster.create(
        pod('other-words', {
          spec: { ...spec, containers: [{ name: 'main', image: 'any', resources: { limits } }] },
        }),
      );
    const part = { 'nvidia.com/gpu': '2', 'nvidia.com/gpumem': '3000' };
    const made = await asking(part, { runtimeClassName: 'nvidia' });
    expect(made.spec?.containers[0]?.resources?.limits).toEqual({ 'nvidia-virtual/gpu': '4' });
    expect([made.spec?.schedulerName, made.spec?.runtimeClassName]).toEqual([
      SCHEDULER_NAME,
      undefined,
    ]);
    expect(made.metadata?.annotations).toMatchObject({
      'nvidia-virtual/memory': 'main=3000Mi',
      'nvidia-virtual/gpus': 'main=2',
    });
    await cluster.delete('other-words');
    const refusal = await refusalOf(asking({ 'nvidia.com/gpumem-percentage': '50' }));
    expect(refusal).toContain('set nvidia.com/gpumem in its limits');
    // Whole GPUs are NVIDIA's.
    const whole = { 'nvidia.com/gpu': '1' };
    const kept = await asking(whole);
    expect(kept.spec?.containers[0]?.resources?.limits).toEqual(whole);
    await cluster.delete('other-words');
  });

  test('by memory is refused if no container is meant', async () => {
    const annotations = { 'nvidia-virtual/memory': '8Gi' };
    const containers = [container('one', 0), container('two', 0)];
    const several = pod('one', { annotations, spec: { containers } });
    expect(await refusalOf(cluster.create(several))).toContain(
      "names none of the pod's 2 containers: write CONTAINER=SIZE",
    );
    const other = pod('one', { slots: 0, annotations: { 'nvidia-virtual/memory': 'other=8Gi' } });
    expect(await refusalOf(cluster.create(other))).toContain(
      'no container that it applies to requests nvidia-virtual/gpu',
    );
  });

  test('that is contradictory is refused with all errors', async () => {
    const annotations = {
      'nvidia-virtual/memory': 'much',
      'nvidia-virtual/gpus': '2',
      'nvidia-virtual/cores': 'nobody=20',
    };
    const refusal = await refusalOf(cluster.create(pod('one', { slots: 3, annotations })));
    expect(refusal).toContain('nvidia-virtual/memory is "much"');
    expect(refusal).toContain('nvidia-virtual/cores names container nobody');
    expect(refusal).toContain('requests 3 nvidia-virtual/gpu over 2 GPUs');
  });

  test('is not refused for what the cluster lacks at the moment', async () => {
    const annotations = {
      'nvidia-virtual/gpu-type': 'no such GPU',
      'nvidia-virtual/memory': '900Gi',
    };
    await cluster.create(pod('one', { slots: 1000, annotations }));
  });

  test('may change its request until it is scheduled', async () => {
    await cluster.create(pod('one'));
    const patch = (value: string) =>
      cluster.api.request({
        method: 'PATCH',
        path: `${PODS}/one`,
        body: { metadata: { annotations: { 'nvidia-virtual/memory': value } } },
        contentType: MERGE,
      });
    await patch('8Gi');
    expect(await refusalOf(patch('much'))).toContain('nvidia-virtual/memory is "much"');
    await bindOne(cluster.api, {});
    expect(await refusalOf(patch('4Gi'))).toContain('nvidia-virtual/memory cannot change');
  });
});

describe('the annotation of the scheduler', () => {
  const mark = { [ANNOTATION.assigned]: '{"version":1,"containers":{}}' };
  afterEach(() => cluster.removePods());

  test('is refused from all other users, in any form', async () => {
    const told = `only the scheduler ${WRITERS.scheduler} may write it, not admin`;
    expect(await refusalOf(cluster.create(pod('one', { annotations: mark })))).toContain(told);
    expect(await refusalOf(cluster.create(pod('one', { slots: 0, annotations: mark })))).toContain(
      told,
    );
    await cluster.create(pod('one'));
    for (const path of [`${PODS}/one`, `${PODS}/one/status`]) {
      const patch = cluster.api.request({
        method: 'PATCH',
        path,
        body: { metadata: { annotations: mark } },
        contentType: MERGE,
      });
      expect(await refusalOf(patch)).toContain(told);
    }
    expect(await refusalOf(bindOne(cluster.api, mark))).toContain(told);
    expect(
      await refusalOf(bindOne(cluster.api, mark, '/api/v1/namespaces/default/bindings')),
    ).toContain(told);
  });

  test('is accepted from the scheduler, and no other user may remove it', async () => {
    await cluster.create(pod('one'));
    await bindOne(as(WRITERS.scheduler), mark);
    expect((await cluster.get('one')).metadata?.annotations).toMatchObject(mark);
    const body = { metadata: { annotations: { [ANNOTATION.assigned]: null } } };
    const removal = cluster.api.request({
      method: 'PATCH',
      path: `${PODS}/one`,
      body,
      contentType: MERGE,
    });
    expect(await refusalOf(removal)).toContain('only the scheduler');
  });
});

test('only its plugin writes the inventory of a node, and only its GPUs are drained', async () => {
  await cluster.addNode('one', []);
  const annotations = { 'nvidia-virtual/inventory': inventory([gpu('GPU-a')]) };
  expect(await refusalOf(cluster.annotateNode('one', annotations))).toContain(
    `(${WRITERS.plugin}) may write it, not admin`,
  );
  const patch = {
    method: 'PATCH',
    path: '/api/v1/nodes/one',
    body: { metadata: { annotations } },
    contentType: MERGE,
  } as const;
  await as(WRITERS.plugin).request(patch);
  await cluster.annotateNode('one', { other: 'may be written' });
  const drain = (gpu: string) =>
    cluster.annotateNode('one', { 'nvidia-virtual/drained-gpus': gpu });
  expect(await refusalOf(drain('0'))).toContain('names 0, and node one has no such GPU');
  await drain('gpu-a');
  await cluster.removeNode('one');
});

test('number 20: without a webhook only pods that request slots are refused', async () => {
  await webhook.end();
  try {
    expect(await refusalOf(cluster.create(pod('asks')))).toContain(
      'failed calling webhook "pods.nvidia-virtual.io"',
    );
    await cluster.create(pod('other', { slots: 0, spec: { schedulerName: 'default-scheduler' } }));
    await cluster.api.request({
      method: 'PATCH',
      path: `${PODS}/other`,
      body: { metadata: { labels: { a: 'b' } } },
      contentType: MERGE,
    });
    await cluster.addNode('one', []);
    await cluster.annotateNode('one', { other: 'may be written' });
    await cluster.removeNode('one');
    await cluster.removePods();
  } finally {
    webhook = await startWebhook();
  }
  await until(async () => (await readiness()).ready, 'it is ready');
  await cluster.create(pod('asks'));
  await cluster.removePods();
});

describe('the certificate', () => {
  const bundles = async () => {
    const kinds = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'];
    type Configuration = { webhooks: { clientConfig: { caBundle: string } }[] };
    const found = kinds.map((kind) =>
      cluster.api.request<Configuration>({ path: `${CONFIGURATIONS}/${kind}/nvidia-virtual` }),
    );
    return (await Promise.all(found)).flatMap(({ webhooks }) =>
      webhooks.map(({ clientConfig }) => clientConfig.caBundle),
    );
  };
  const secret = () => cluster.api.request<V1Secret>({ path: SECRET });
  const bundle = async () => (await secret()).data?.['ca.crt'];

  test('is the same for all replicas', async () => {
    const before = await secret();
    const [other, otherHttp] = (await freePorts(2)) as [number, number];
    const second = await startWebhook(other, otherHttp);
    await until(async () => (await readiness(otherHttp)).ready, 'the second one is ready');
    expect((await secret()).metadata?.resourceVersion).toBe(before.metadata?.resourceVersion);
    await second.end();
  });

  test('number 20: is trusted again after the trusted CA was overwritten', async () => {
    const path = `${CONFIGURATIONS}/mutatingwebhookconfigurations/nvidia-virtual`;
    const body = [{ op: 'remove', path: '/webhooks/0/clientConfig/caBundle' }];
    await cluster.api.request({
      method: 'PATCH',
      path,
      body,
      contentType: 'application/json-patch+json',
    });
    await until(
      async () => new Set([...(await bundles()), await bundle()]).size === 1,
      'all hold the bundle',
    );
  });

  test('number 20: is recreated by a replica after the Secret was emptied', async () => {
    const second = await startWebhook(...((await freePorts(2)) as [number, number]));
    const former = await bundle();
    await cluster.api.request({
      method: 'PATCH',
      path: SECRET,
      body: { data: null },
      contentType: MERGE,
    });
    await until(async () => ![undefined, former].includes(await bundle()), 'there is another');
    await until(
      async () => new Set([...(await bundles()), await bundle()]).size === 1,
      'all hold it',
    );
    await until(
      () =>
        cluster.create(pod('one')).then(
          () => true,
          () => false,
        ),
      'a pod is taken',
    );
    await cluster.removePods();
    await second.end();
  });
});

async function bindOne(
  api: ApiServer,
  annotations: Record<string, string>,
  path = `${PODS}/one/binding`,
): Promise<void> {
  const metadata = { name: 'one', namespace: 'default', annotations };
  await api.request({
    method: 'POST',
    path,
    body: {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata,
      target: { kind: 'Node', name: 'nowhere' },
    },
  });
}
