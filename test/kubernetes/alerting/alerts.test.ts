import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readNamespaceUsage } from '@nvidia-virtual/kubectl-plugin/charge-back';
import { Kubectl } from '@nvidia-virtual/kubectl-plugin/kubectl';
import { RedisServer } from '@nvidia-virtual/ledger/testing/redis-server';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { ControlPlane } from '../control-plane.js';
import { freePorts } from '../ports.js';
import { ControlProcesses } from './control-processes.js';
import { PluginNode, ProxyNode } from './gpu-nodes.js';
import { Monitoring } from './monitoring.js';

const STARTING = 900_000;
const XIDS = 'nvidia_virtual_gpu_xid_errors_total{xid="48"} > 0';
/** For allocations of no pod, which have no namespace. */
const IN_TEAM_A = {
  source_labels: ['namespace'],
  regex: '',
  target_label: 'namespace',
  replacement: 'team-a',
};

/**
 * Failures of real processes, read by a real Prometheus with the chart's rules. A minute of the
 * rules lasts a second here.
 */
let plane: ControlPlane;
let redis: RedisServer;
let control: ControlProcesses;
let monitoring: Monitoring;
const lost = new PluginNode('lost');
const slotless = new PluginNode('slotless');
const refusing = new PluginNode('refusing');
const crashing = new ProxyNode('crashing');
const greedy = new ProxyNode('greedy');
const failing = new ProxyNode('failing');

beforeAll(async () => {
  [plane, redis] = await Promise.all([ControlPlane.start(), RedisServer.start()]);
  const ports = await freePorts(16);
  const next = () => ports.pop() as number;
  const node = (one: PluginNode) => {
    const pair = [next(), next()] as const;
    return one.start(pair, redis.url).then(() => pair);
  };
  control = new ControlProcesses(plane, {
    ...{ webhook: next(), webhookHttp: next(), extender: next(), extenderHttp: next() },
    ...{ scheduler: next(), usage: next(), usageHttp: next() },
  });
  const alone = [next(), next(), next()] as const;
  const [, ...pairs] = await Promise.all([
    control.start(redis.url),
    node(lost),
    node(slotless),
    node(refusing),
    crashing.start(alone[0], redis.url),
    greedy.start(alone[1], redis.url, { lies: true }),
    failing.start(alone[2], redis.url),
  ]);
  const plugins = pairs.slice(0, 3) as (readonly [number, number])[];
  const local = (list: readonly number[]) => list.map((port) => `127.0.0.1:${port}`);
  monitoring = await Monitoring.start(plane, [
    ...(await control.jobs()),
    {
      job_name: 'gpu-proxy',
      targets: local([...plugins.map(([proxy]) => proxy), ...alone]),
      more: { metric_relabel_configs: [IN_TEAM_A] },
    },
    ...['lost', 'slotless', 'refusing'].map((name, index) => ({
      job_name: `device-plugin-${name}`,
      targets: local([plugins[index]?.[1] as number]),
      // As the relabeling of the ServiceMonitor.
      labels: { node: name, endpoint: 'plugin-metrics' },
    })),
  ]);
}, STARTING);
afterAll(async () => {
  monitoring?.stop();
  control?.stop();
  await Promise.all(
    [lost, slotless, refusing, crashing, greedy, failing].map((node) => node.remove()),
  );
  await redis?.remove();
  await plane?.stop();
});

test('every process is read', async () => {
  await control.place('quick');
  await eventually(async () => {
    const up = await monitoring.query('up');
    expect(up.filter(([, value]) => value !== 1)).toEqual([]);
    expect(up).toHaveLength(14);
    expect(await monitoring.query('scheduler_scheduling_attempt_duration_seconds_sum')).not.toEqual(
      [],
    );
  });
});

test('each failure leads to one notification, that of its cause', async () => {
  await control.place('slow', true);
  crashing.killArbiter();
  await crashing.killWorker();
  greedy.run('start()');
  await failing.hold();
  await eventually(async () => {
    failing.reportXid(); // NVML tells those who have asked before
    expect(await monitoring.query(XIDS)).not.toEqual([]);
  });
  lost.loseGpu();
  await Promise.all([refusing.refuseProgram(0), slotless.killProxy(), control.killWebhook()]);
  await redis.kill();
  await eventually(() => expect(monitoring.notified).toContain('NvidiaVirtualGpuLost lost'));
  // Its socket is still there for the containers that had it.
  await lost.refuseProgram(0);
  const silenced = new Set<string>();
  await eventually(async () => {
    for (const alert of await monitoring.suppressed()) silenced.add(alert);
    expect([...silenced].toSorted()).toEqual([
      'NvidiaVirtualNodeWithoutSlots lost',
      'NvidiaVirtualSessionsRefused lost',
    ]);
    expect(await control.creates('unchecked')).toBe(false);
    expect(monitoring.notified).toEqual(
      [
        'NvidiaVirtualArbiterRestarted crashing',
        'NvidiaVirtualCertificateExpiring',
        'NvidiaVirtualGpuLost lost',
        'NvidiaVirtualGpuXid failing',
        'NvidiaVirtualLedgerAway',
        'NvidiaVirtualMemoryBeyondQuota greedy',
        'NvidiaVirtualNodeWithoutSlots slotless',
        'NvidiaVirtualSchedulingSlow',
        'NvidiaVirtualSessionsRefused refusing',
        'NvidiaVirtualWebhookErrors',
        'NvidiaVirtualWorkersDied crashing',
      ].toSorted(),
    );
  });
});

test('kubectl gpu-usage namespaces works while the ledger is lost', async () => {
  await crashing.hold();
  await control.exposePrometheus(monitoring.address);
  const directory = path.dirname(kubernetesTool('kubectl'));
  const kubectl = new Kubectl({
    connection: ['--kubeconfig', plane.adminKubeconfig],
    environment: { ...process.env, PATH: `${directory}:${process.env['PATH']}` },
    requestTimeout: '30s',
    say: () => {},
  });
  const options = { prometheus: 'monitoring/prometheus-operated:9090', since: '1h' };
  await eventually(async () =>
    expect(await readNamespaceUsage(kubectl, options)).toEqual([
      expect.objectContaining({ namespace: 'team-a', gpuHours: expect.anything() }),
    ]),
  );
});
