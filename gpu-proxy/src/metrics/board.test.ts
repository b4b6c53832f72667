import { readFileSync } from 'node:fs';
import path from 'node:path';
import { allMetrics } from './list.js';

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly {
    readonly expr: string;
    readonly legendFormat: string;
    readonly datasource: { readonly uid: string };
  }[];
}

interface Variable {
  readonly name: string;
  readonly type: string;
  readonly query: string | { readonly query: string };
  readonly datasource?: { readonly uid: string };
}

const FILE = path.resolve(import.meta.dirname, '../../grafana/nvidia-virtual.json');
const board = JSON.parse(readFileSync(FILE, 'utf8')) as {
  panels: Panel[];
  templating: { list: Variable[] };
};
const charts = board.panels.filter(({ type }) => type !== 'row');
const targets = charts.flatMap((panel) => panel.targets ?? []);
const variables = board.templating.list;
const queries = [
  ...targets.map(({ expr }) => expr),
  ...variables.map(({ query }) => (typeof query === 'string' ? query : query.query)),
];

/** By the name in queries: a histogram has three. */
const known = new Map(
  allMetrics().flatMap((metric) => {
    const names =
      metric.type === 'histogram'
        ? ['_bucket', '_sum', '_count'].map((end) => metric.name + end)
        : [metric.name];
    return names.map((name) => [name, metric] as const);
  }),
);

function metricsIn(query: string): string[] {
  return query.match(/\bnvidia_virtual_\w+/g) ?? [];
}

test('every query uses declared metrics', () => {
  const asked = queries.flatMap(metricsIn);
  expect(asked.length).toBeGreaterThan(20);
  expect(asked.filter((name) => !known.has(name))).toEqual([]);
});

test('queries use the rate of counters, and of nothing else', () => {
  for (const { expr } of targets)
    for (const name of metricsIn(expr))
      expect([expr, isRated(expr, name)]).toEqual([expr, known.get(name)?.type !== 'gauge']);
});

function isRated(expr: string, name: string): boolean {
  return new RegExp(`\\b(rate|increase)\\(${name}\\{[^}]*\\}\\[\\$__(rate_interval|range)\\]`).test(
    expr,
  );
}

test('every label in a query or legend is a label of the metric', () => {
  for (const { expr, legendFormat } of targets) {
    const labels = new Set(
      metricsIn(expr).flatMap((name) => ['node', 'le', ...(known.get(name)?.labels ?? [])]),
    );
    const filtered = [...expr.matchAll(/(\w+)=~?"/g)].map((match) => match[1] as string);
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap((match) =>
      (match[1] as string).split(', '),
    );
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map((match) => match[1] as string);
    expect([
      expr,
      [...filtered, ...grouped, ...shown].filter((label) => !labels.has(label)),
    ]).toEqual([expr, []]);
    if (grouped.length > 0)
      expect([expr, shown.filter((label) => !grouped.includes(label))]).toEqual([expr, []]);
  }
});

test('the data source is a variable, used everywhere', () => {
  expect(variables.filter(({ type }) => type === 'datasource')).toEqual([
    expect.objectContaining({ name: 'datasource', query: 'prometheus' }),
  ]);
  const users = [...charts, ...targets, ...variables.filter(({ type }) => type !== 'datasource')];
  expect(users.length).toBeGreaterThan(0);
  for (const { datasource } of users) expect(datasource?.uid).toMatch(/^\$\{datasource\}$/);
  const used = new Set(
    queries.flatMap((query) => [...query.matchAll(/\$([a-z]+)/g)].map((match) => match[1])),
  );
  expect([...used].filter((name) => !variables.some((variable) => variable.name === name))).toEqual(
    [],
  );
});

test('panels have unique ids, do not overlap, and fit the width', () => {
  expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length);
  const taken = new Set<string>();
  for (const { id, gridPos } of board.panels) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect([id, x < 24, taken.has(`${x},${y}`)]).toEqual([id, true, false]);
        taken.add(`${x},${y}`);
      }
  }
});
