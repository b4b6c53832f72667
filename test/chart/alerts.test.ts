import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { Metrics as PluginMetrics } from '@nvidia-virtual/device-plugin/metrics';
import { allMetrics } from '@nvidia-virtual/gpu-proxy/metrics/list';
import { Metrics as SchedulerMetrics } from '@nvidia-virtual/scheduler-ext/metrics';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { buildKubernetesTools, kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { Metrics as UsageMetrics } from '@nvidia-virtual/usage-api/metrics';
import { parse } from 'yaml';
import { INHIBITION_FILE, RULE_FILE, readAlertRules } from './alert-rules.js';
import { type KubernetesObject, render } from './chart.js';

const BUILDING_PROMTOOL = 900_000;
const RUNBOOKS = path.join(REPOSITORY, 'docs', 'runbooks');
/** Series of other exporters. The test with a real Prometheus reads them, too. */
const OF_OTHERS = [
  'up',
  'scheduler_scheduling_attempt_duration_seconds_bucket',
  'apiserver_admission_webhook_rejection_count',
  'apiserver_admission_webhook_fail_open_count',
];

/** Values each minute, in Prometheus' notation: `0x5 1x30` is five minutes of 0, then 30 of 1. */
type Series = Readonly<Record<string, string>>;

interface Case {
  readonly what: string;
  readonly series: Series;
  readonly at: string;
  /** Labels of the alerts besides the name, each alert that fires. */
  readonly fires: readonly (readonly [alert: string, labels: Readonly<Record<string, string>>])[];
}

const NODE = { node: 'n1' };
const GPU = { ...NODE, gpu: 'GPU-1' };
const healthy = (values: string) => ({
  'nvidia_virtual_plugin_gpu_healthy{node="n1",gpu="GPU-1"}': values,
});
const slots = (values: string) => ({
  'nvidia_virtual_plugin_slots{node="n1",health="healthy"}': values,
});
const attempts = (fast: string, all: string) => {
  const name = 'scheduler_scheduling_attempt_duration_seconds_bucket';
  const labels = 'profile="nvidia-virtual-scheduler",result="scheduled"';
  return {
    [`${name}{${labels},le="0.128"}`]: fast,
    [`${name}{${labels},le="4.096"}`]: all,
    [`${name}{${labels},le="+Inf"}`]: all,
  };
};
const rejected = (name: string, type: string) => ({
  [`apiserver_admission_webhook_rejection_count{name="${name}",error_type="${type}"}`]: '1+1x30',
});
const xid = (consequence: string, values: string) => ({
  [`nvidia_virtual_gpu_xid_errors_total{node="n1",gpu="GPU-1",xid="1",consequence="${consequence}"}`]:
    values,
});
const used = (busy: string, info = 'exclusive'): Series => ({
  'nvidia_virtual_allocation_reported_busy_ratio{node="n1",allocation="a",gpu="GPU-1"}': busy,
  'nvidia_virtual_allocation_used_seconds_total{node="n1",allocation="a",gpu="GPU-1"}': '0+6x40',
  [`nvidia_virtual_allocation_info{node="n1",allocation="a",mode="${info}"}`]: '1x40',
});

const CASES: readonly Case[] = [
  {
    what: 'a GPU fails: it is lost',
    series: { ...healthy('1x5 0x30'), ...slots('20x5 10x30') },
    at: '10m',
    fires: [['NvidiaVirtualGpuLost', GPU]],
  },
  {
    what: 'a GPU that works again stays reported while counters show its consequences',
    series: { ...healthy('1x5 0x5 1x40') },
    at: '20m',
    fires: [['NvidiaVirtualGpuLost', GPU]],
  },
  {
    what: 'a GPU that has worked for long is forgotten',
    series: { ...healthy('1x5 0x5 1x40') },
    at: '30m',
    fires: [],
  },
  {
    what: 'the only GPU fails: the node has no slots, too',
    series: { ...healthy('1x5 0x30'), ...slots('10x5 0x30') },
    at: '15m',
    fires: [
      ['NvidiaVirtualGpuLost', GPU],
      ['NvidiaVirtualNodeWithoutSlots', NODE],
    ],
  },
  {
    what: 'all slots are unhealthy because gpu-proxy is away',
    series: { ...healthy('1x40'), ...slots('10x5 0x30') },
    at: '15m',
    fires: [['NvidiaVirtualNodeWithoutSlots', NODE]],
  },
  {
    what: 'another product serves the GPUs, and nothing is offered to the kubelet',
    series: {
      ...slots('10x40'),
      'nvidia_virtual_plugin_kubelet_connected{node="n1"}': '1x5 0x30',
    },
    at: '15m',
    fires: [['NvidiaVirtualNodeWithoutSlots', NODE]],
  },
  {
    what: 'the device plugin does not answer',
    series: { 'up{node="n1",endpoint="plugin-metrics"}': '1x5 0x30' },
    at: '15m',
    fires: [['NvidiaVirtualNodeWithoutSlots', NODE]],
  },
  {
    what: 'an upgrade restarts the device plugin',
    series: {
      'up{node="n1",endpoint="plugin-metrics"}': '1x5 0x3 1x30',
      ...slots('10x5 _x3 10x5'),
    },
    at: '9m',
    fires: [],
  },
  {
    what: 'the second check found memory beyond the quota',
    series: { 'nvidia_virtual_memory_beyond_quota_total{node="n1"}': '0x5 1x30' },
    at: '8m',
    fires: [['NvidiaVirtualMemoryBeyondQuota', NODE]],
  },
  {
    what: 'kernels ran longer than was granted',
    series: used('0.9x40'),
    at: '35m',
    fires: [['NvidiaVirtualTimeBeyondGrant', { ...GPU, allocation: 'a' }]],
  },
  {
    what: 'there are no grants of time in concurrent mode',
    series: used('0.9x40', 'concurrent'),
    at: '35m',
    fires: [],
  },
  { what: 'kernels ran as granted', series: used('0.2x40'), at: '35m', fires: [] },
  {
    what: 'the arbiter was restarted',
    series: { 'nvidia_virtual_arbiter_restarts_total{node="n1"}': '0x5 1x30' },
    at: '8m',
    fires: [['NvidiaVirtualArbiterRestarted', NODE]],
  },
  {
    what: 'a worker died',
    series: {
      'nvidia_virtual_sessions_ended_total{node="n1",cause="worker_died"}': '3x5 4x30',
      'nvidia_virtual_sessions_ended_total{node="n1",cause="client_ended"}': '3+7x35',
      'nvidia_virtual_sessions_ended_total{node="n1",cause="killed"}': '3+7x35',
    },
    at: '10m',
    fires: [['NvidiaVirtualWorkersDied', NODE]],
  },
  {
    what: 'a gpu-proxy restarts, and its counters begin again',
    series: {
      'nvidia_virtual_sessions_ended_total{node="n1",cause="worker_died"}': '3x5 0x30',
      'nvidia_virtual_arbiter_restarts_total{node="n1"}': '2x5 0x30',
      'nvidia_virtual_connections_refused_total{node="n1",reason="node"}': '5x5 0x30',
    },
    at: '10m',
    fires: [],
  },
  {
    what: 'gpu-proxy refused a program because of the node',
    series: {
      'nvidia_virtual_connections_refused_total{node="n1",reason="node"}': '0x5 1x30',
      'nvidia_virtual_sessions_ended_total{node="n1",cause="refused"}': '0x35',
    },
    at: '10m',
    fires: [['NvidiaVirtualSessionsRefused', NODE]],
  },
  {
    what: 'a worker refused a program',
    series: {
      'nvidia_virtual_connections_refused_total{node="n1",reason="node"}': '0x35',
      'nvidia_virtual_sessions_ended_total{node="n1",cause="refused"}': '0x5 1x30',
    },
    at: '10m',
    fires: [['NvidiaVirtualSessionsRefused', NODE]],
  },
  {
    what: 'a tenant connects in a loop although its allocation is full',
    series: { 'nvidia_virtual_connections_refused_total{node="n1",reason="pod"}': '0+900x35' },
    at: '10m',
    fires: [],
  },
  {
    what: 'two nodes and the usage API miss the ledger: that is one alert',
    series: {
      'nvidia_virtual_ledger_connected{node="n1"}': '1x5 0x30',
      'nvidia_virtual_ledger_connected{node="n2"}': '1x5 0x30',
      nvidia_virtual_usage_api_ledger_away: '0x5 1x30',
    },
    at: '10m',
    fires: [['NvidiaVirtualLedgerAway', {}]],
  },
  {
    what: 'only the usage API misses the ledger',
    series: {
      'nvidia_virtual_ledger_connected{node="n1"}': '1x35',
      nvidia_virtual_usage_api_ledger_away: '0x5 1x30',
    },
    at: '10m',
    fires: [['NvidiaVirtualLedgerAway', {}]],
  },
  {
    what: 'one of two replicas has a certificate that expires in 20 days',
    series: {
      'nvidia_virtual_certificate_expiry_timestamp_seconds{server="webhook",pod="a"}': '1728000x60',
      'nvidia_virtual_certificate_expiry_timestamp_seconds{server="webhook",pod="b"}': '7776000x60',
      'nvidia_virtual_certificate_expiry_timestamp_seconds{server="usage-api"}': '2600000x60',
    },
    at: '30m',
    fires: [['NvidiaVirtualCertificateExpiring', { server: 'webhook' }]],
  },
  {
    what: 'the API server cannot call a webhook of ours',
    series: rejected('pods.nvidia-virtual.io', 'calling_webhook_error'),
    at: '10m',
    fires: [['NvidiaVirtualWebhookErrors', {}]],
  },
  {
    what: 'our webhook rejects a pod, and the webhook of others fails',
    series: {
      ...rejected('pods.nvidia-virtual.io', 'no_error'),
      ...rejected('pods.example.com', 'calling_webhook_error'),
    },
    at: '10m',
    fires: [],
  },
  {
    what: 'the API server continues without the webhook',
    series: {
      'apiserver_admission_webhook_fail_open_count{name="nodes.nvidia-virtual.io"}': '1+1x30',
    },
    at: '10m',
    fires: [['NvidiaVirtualWebhookErrors', {}]],
  },
  {
    what: 'the webhook cannot read its requests',
    series: {
      'nvidia_virtual_scheduler_requests_total{path="/mutate",status="400"}': '1+1x30',
      'nvidia_virtual_scheduler_requests_total{path="/mutate",status="200"}': '1+9x30',
    },
    at: '10m',
    fires: [['NvidiaVirtualWebhookErrors', {}]],
  },
  {
    what: 'placing a pod takes seconds',
    series: attempts('0+1x40', '0+10x40'),
    at: '30m',
    fires: [['NvidiaVirtualSchedulingSlow', {}]],
  },
  {
    what: 'placing a pod takes milliseconds',
    series: attempts('0+10x40', '0+10x40'),
    at: '30m',
    fires: [],
  },
  {
    what: 'memory of an oversubscribed GPU moves most of the time',
    series: { 'nvidia_virtual_gpu_exchanging_ratio{node="n1",gpu="GPU-1"}': '0.6x30' },
    at: '15m',
    fires: [['NvidiaVirtualGpuThrashing', GPU]],
  },
  {
    what: 'an oversubscribed GPU has one pod at a time',
    series: { 'nvidia_virtual_gpu_exchanging_ratio{node="n1",gpu="GPU-1"}': '0.1x30' },
    at: '15m',
    fires: [],
  },
  {
    what: 'the driver reported the first Xid of its kind',
    series: xid('probe', '_x5 1x30'),
    at: '10m',
    fires: [['NvidiaVirtualGpuXid', GPU]],
  },
  {
    what: 'the driver reported another Xid of the same kind',
    series: xid('reset', '1x40 2x30'),
    at: '45m',
    fires: [['NvidiaVirtualGpuXid', GPU]],
  },
  { what: 'a new node has had no Xid', series: xid('probe', '_x5 0x30'), at: '10m', fires: [] },
  {
    what: 'the last Xid was long ago',
    series: xid('probe', '_x5 1x50'),
    at: '40m',
    fires: [],
  },
  {
    what: 'a program caused Xids by illegal addresses',
    series: xid('program', '_x5 1+9x30'),
    at: '10m',
    fires: [],
  },
];

const rules = readAlertRules();

describe('alerts', () => {
  beforeAll(() => buildKubernetesTools(['promtool']), BUILDING_PROMTOOL);

  test('fire in the cases that they are for, and in no other', async () => {
    const directory = mkdtempSync(path.join(tmpdir(), 'alerts-'));
    try {
      // promtool compares annotations, too, which are no logic.
      const bare = rules.map(({ annotations: _, ...rule }) => rule);
      const tested = path.join(directory, 'rules.yaml');
      writeFileSync(tested, JSON.stringify({ groups: [{ name: 'all', rules: bare }] }));
      const file = path.join(directory, 'test.yaml');
      writeFileSync(file, JSON.stringify({ rule_files: [tested], tests: CASES.map(promtoolTest) }));
      const { status, output } = await promtool('test', 'rules', file);
      expect([status, output]).toEqual([0, expect.stringContaining('SUCCESS')]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test('have rules that Prometheus accepts', async () => {
    const { status, output } = await promtool('check', 'rules', '--lint-fatal', RULE_FILE);
    expect([status, output]).toEqual([0, expect.stringContaining(`${rules.length} rules found`)]);
  });
});

test('every alert fires in a case', () => {
  const fired = new Set(CASES.flatMap(({ fires }) => fires.map(([alert]) => alert)));
  expect([...fired].toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
});

test('every alert has a runbook, which the chart links', async () => {
  const values = {
    monitoring: { prometheusRule: true, prometheusRuleLabels: { release: 'prometheus' } },
  };
  const rendered = await render({ values, apis: ['monitoring.coreos.com/v1/PrometheusRule'] });
  const { metadata, spec } = rendered.find('PrometheusRule', 'nvidia-virtual');
  expect(metadata.labels).toMatchObject({ release: 'prometheus' });
  const shown = spec.groups.flatMap((group: KubernetesObject) => group.rules);
  expect(shown.map(({ alert }: KubernetesObject) => alert)).toEqual(
    rules.map(({ alert }) => alert),
  );
  for (const { alert, expr, annotations } of shown as KubernetesObject[]) {
    const page = path.basename(annotations.runbook_url);
    expect([alert, page, existsSync(path.join(RUNBOOKS, page))]).toEqual([
      alert,
      `${alert}.md`,
      true,
    ]);
    expect(expr).toBe(rules.find((rule) => rule.alert === alert)?.expr);
  }
  expect(readdirSync(RUNBOOKS).toSorted()).toEqual(
    rules.map(({ alert }) => `${alert}.md`).toSorted(),
  );
});

test('alerts use metrics that our processes serve, or known ones of others', async () => {
  const declared = new Set([...OF_OTHERS, ...(await ourMetrics())]);
  const asked = rules.flatMap(({ expr }) =>
    [...expr.matchAll(/\b([a-zA-Z_]\w*)(?=[{[)]| ==| >)/g)].map((match) => match[1] as string),
  );
  const named = asked.filter((name) => /_|^up$/.test(name));
  expect(named.length).toBeGreaterThan(rules.length);
  expect(named.filter((name) => !declared.has(name))).toEqual([]);
});

test('inhibition rules name alerts of the chart, and docs/alerts.md lists all alerts', () => {
  const text = readFileSync(INHIBITION_FILE, 'utf8');
  const known = new Set(rules.map(({ alert }) => alert));
  const named = parse(text).inhibit_rules.flatMap(
    ({ source_matchers: source, target_matchers: target }: Record<string, string[]>) =>
      [...(source ?? []), ...(target ?? [])].flatMap(alertsOf),
  );
  expect(named.filter((name: string) => !known.has(name))).toEqual(['KubeNodeNotReady']);
  const page = readFileSync(path.join(REPOSITORY, 'docs', 'alerts.md'), 'utf8');
  const listed = [...page.matchAll(/^\| \[(\w+)\]\(runbooks\/\1\.md\) \|/gm)].map(
    ([, name]) => name,
  );
  expect(listed).toEqual(rules.map(({ alert }) => alert));
});

function promtoolTest({ what, series, at, fires }: Case) {
  return {
    name: what,
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: rules.map(({ alert, labels }) => ({
      eval_time: at,
      alertname: alert,
      exp_alerts: fires
        .filter(([name]) => name === alert)
        .map(([, own]) => ({ exp_labels: { ...labels, ...own } })),
    })),
  };
}

function promtool(...args: readonly string[]) {
  return runCommand(kubernetesTool('promtool'), args);
}

/** Names of alerts in `alertname = NAME` and `alertname =~ "PREFIX(A|B)"`. */
function alertsOf(matcher: string): string[] {
  const [, name, prefix, endings] =
    /^alertname (?:= (\w+)|=~ "(\w+)\(([\w|]+)\)")$/.exec(matcher) ?? [];
  if (name !== undefined) return [name];
  return endings?.split('|').map((ending) => `${prefix}${ending}`) ?? [];
}

async function ourMetrics(): Promise<string[]> {
  const scheduler = new SchedulerMetrics();
  scheduler.followCertificate(() => 1);
  const expositions = [
    new PluginMetrics('n1', {
      slots: () => ({ healthy: 1, unhealthy: 1 }),
      watched: () => true,
      proxyAnswers: () => true,
      gpus: () => [],
    }).registry.metrics(),
    scheduler.exposition(),
    new UsageMetrics({
      watches: () => 0,
      pods: () => 0,
      nodes: () => 0,
      ledgerTrouble: () => false,
      certificateExpiry: () => 1,
    }).exposition(),
  ];
  const names = (await Promise.all(expositions)).flatMap((text) =>
    [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name as string),
  );
  return [...names, ...allMetrics().map(({ name }) => name)];
}
