import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { V1Pod, V1Service } from '@kubernetes/client-node';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { issue, makeAuthority } from '@nvidia-virtual/kube-common/certificates/authority';
import { SCHEDULER_NAME } from '@nvidia-virtual/kube-common/names';
import { webhookConfigurations } from '@nvidia-virtual/scheduler-ext/testing/webhook-configurations';
import { WebhookService, writersOf } from '@nvidia-virtual/scheduler-ext/webhook/webhook-service';
import { eventually, until } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import { render } from '../chart/chart.js';
import { findHostAddress, freePorts } from './ports.js';
import { pod } from './scheduler/objects.js';
import { UsageScene } from './usage/scene.js';

const BUILDING_TOOLS = 1_800_000;
const NAMES = { namespace: 'nvidia-virtual', release: 'nvidia-virtual' };
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1';

/** Kubernetes accepts neither a loopback nor a link-local address as an endpoint. */
const host = findHostAddress('IPv6');
const onIPv6 = host === undefined ? test.skip : test;
let scene: UsageScene;
let api: ApiServer;

beforeAll(async () => {
  if (host === undefined) return;
  scene = await UsageScene.start(host);
  api = ApiServer.load(scene.plane.adminKubeconfig);
}, BUILDING_TOOLS);
afterAll(async () => {
  api?.close();
  await scene?.stop();
});

onIPv6(
  'kubectl reads the usage API, whose ledger, replicas and API server speak IPv6',
  async () => {
    const { output } = await scene.kubectl(['get', 'podgpuusages', '-n', 'team-a', '-o', 'name']);
    expect(output).toContain('podgpuusage.usage.nvidia-virtual.io/train');
  },
);

onIPv6("every Service of the chart gets an address of the cluster's family", async () => {
  const services = (await render()).of('Service');
  await scene.kubectl(['delete', 'service', '-n', 'nvidia-virtual', 'nvidia-virtual-usage-api']);
  await scene.apply(...services);
  const { items } = await api.request<{ items: V1Service[] }>({
    path: '/api/v1/namespaces/nvidia-virtual/services',
  });
  expect(items.map(({ metadata, spec }) => [metadata?.name, spec?.ipFamilies])).toEqual(
    services
      .map(({ metadata }) => [metadata.name, ['IPv6']])
      .toSorted(([a], [b]) => String(a).localeCompare(String(b))),
  );
});

onIPv6('the API server calls the webhook, whose certificate others renew, at [::1]', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'certificate-'));
  const [port, health] = (await freePorts(2)) as [number, number];
  const authority = await makeAuthority('test', new Date());
  const { certificate, key } = await issue(authority, ['::1'], new Date());
  writeFileSync(path.join(directory, 'tls.crt'), certificate);
  writeFileSync(path.join(directory, 'tls.key'), key);
  const options = {
    ...NAMES,
    kubeconfig: scene.plane.kubeconfig('without rights'),
    listen: { host: '::1', port },
    http: { host: '::1', port: health },
    host: undefined,
    slotMemory: undefined,
    slotCores: 10,
    slotsPerGpu: 10,
    translate: undefined,
    certificateDirectory: directory,
    clientAuthority: undefined,
    logLevel: 'info' as const,
  };
  const webhook = await WebhookService.start(options, pino({ level: 'silent' }));
  try {
    const client = (place: string) => ({
      url: `https://[::1]:${port}${place}`,
      caBundle: Buffer.from(authority.certificate).toString('base64'),
    });
    const writers = writersOf(NAMES);
    for (const body of webhookConfigurations({ name: 'nvidia-virtual', writers, client }))
      await api.request({
        method: 'POST',
        path: `${CONFIGURATIONS}/${(body as { kind: string }).kind.toLowerCase()}s`,
        body,
      });
    const ready = async () => (await fetch(`http://[::1]:${health}/readyz`)).ok;
    await until(ready, 'the webhook is ready');
    // The API server notices the configurations by its own watch.
    await eventually(async () => {
      const made = await api.request<V1Pod>({
        method: 'POST',
        path: '/api/v1/namespaces/default/pods',
        query: { dryRun: 'All' },
        body: pod('one', { spec: { schedulerName: 'default-scheduler' } }),
      });
      expect(made.spec?.schedulerName).toBe(SCHEDULER_NAME);
    });
  } finally {
    await webhook.end();
    rmSync(directory, { recursive: true });
  }
});
