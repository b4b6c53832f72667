import { readFileSync } from 'node:fs';
import path from 'node:path';
import { chargeBackQueries, readNamespaceUsage } from './charge-back.js';
import { type Answer, FakeKubectl } from './testing/fake-kubectl.js';
import { NAMESPACE_COLUMNS, sortNamespaces } from './view/namespaces.js';
import { Table } from './view/table.js';

const PAGE = path.resolve(import.meta.dirname, '../../docs/chargeback.md');

let kubectl: FakeKubectl | undefined;
afterEach(() => {
  kubectl?.remove();
  kubectl = undefined;
});
const calls = () => kubectl?.calls ?? [];

function read(answer: Answer, { prometheus = 'monitoring/prometheus:9090', since = '30d' } = {}) {
  kubectl = new FakeKubectl(answer);
  return readNamespaceUsage(kubectl.client(), { prometheus, since });
}

const sample = (namespace: string, quantity: string, value: string) => ({
  metric: { namespace, quantity },
  value: [0, value],
});
const answerOf = (...result: object[]) => ({ output: JSON.stringify({ data: { result } }) });
const FULL = answerOf(
  sample('b', 'gpuGranted', '100'),
  sample('b', 'gpuUsed', '25'),
  sample('b', 'memoryGranted', '800'),
  sample('b', 'memoryUsed', '600.04'),
  sample('a', 'gpuGranted', '10'),
  sample('a', 'gpuUsed', '9'),
);

test('one request through the API server reads all quantities', async () => {
  expect(await read(FULL, { prometheus: 'monitoring/https:prom-1:web' })).toEqual([
    { namespace: 'a', gpuHours: { granted: 10, used: 9 }, gibHours: { granted: 0, used: 0 } },
    {
      namespace: 'b',
      gpuHours: { granted: 100, used: 25 },
      gibHours: { granted: 800, used: 600.04 },
    },
  ]);
  expect(calls()).toHaveLength(1);
  const url = new URL(calls()[0]?.[2] ?? '', 'http://localhost');
  expect(url.pathname).toBe(
    '/api/v1/namespaces/monitoring/services/https:prom-1:web/proxy/api/v1/query',
  );
  for (const query of Object.values(chargeBackQueries('30d')))
    expect(url.searchParams.get('query')).toContain(query);
});

test('the table shows hours and efficiency, and sorts', async () => {
  const usage = await read(FULL);
  const lines = new Table(NAMESPACE_COLUMNS, usage).lines(sortNamespaces(usage, 'efficiency'));
  expect(lines.map((line) => line.split(/ +/))).toEqual([
    ['NAMESPACE', 'GPU-HOURS', 'USED', 'EFFICIENCY', 'GIB-HOURS', 'USED', 'EFFICIENCY'],
    ['b', '100.0', '25.0', '25%', '800.0', '600.0', '75%'],
    ['a', '10.0', '9.0', '90%', '0.0', '0.0', '-'],
  ]);
  expect(sortNamespaces(usage, 'memory').map(({ namespace }) => namespace)).toEqual(['b', 'a']);
});

test('names of namespaces cannot control the terminal', async () => {
  const usage = await read(answerOf(sample('a\u001b[31m', 'gpuUsed', '1')));
  expect(new Table(NAMESPACE_COLUMNS, usage).lines(usage)[1]).toMatch(/^a\?\[31m /);
});

test.each([
  ['Forbidden): services "p" is forbidden: User "anna" cannot get', 'PROMETHEUS_FORBIDDEN'],
  ['NotFound): services "prometheus" not found', 'PROMETHEUS_AWAY'],
  ['ServiceUnavailable): no endpoints available for service', 'PROMETHEUS_AWAY'],
])('Error from server (%s is %s', async (text, code) => {
  await expect(read({ error: `Error from server (${text}\n` })).rejects.toMatchObject({ code });
});

test('an answer of another server than Prometheus is reported', async () => {
  await expect(read({ output: '<html>' })).rejects.toMatchObject({ code: 'PROMETHEUS_AWAY' });
});

test.each([
  { prometheus: 'prometheus:9090' },
  { prometheus: 'a/b:1/../c' },
  { since: '30' },
  { since: '1d])' },
])('%p is refused', async (options) => {
  await expect(read(FULL, options)).rejects.toMatchObject({ code: 'USAGE' });
  expect(calls()).toEqual([]);
});

test('docs/chargeback.md has the queries', () => {
  const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/^```promql\n(.*?)```$/gms)];
  expect(blocks.map(([, query = '']) => query.replaceAll(/\s+/g, ' ').trim())).toEqual(
    Object.values(chargeBackQueries('30d')),
  );
});
