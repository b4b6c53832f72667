import { readFileSync } from 'node:fs';
import { renderBarChart } from './bar-chart.js';
import { renderPage } from './page.js';
import { reportFiles } from './report-files.js';

const MACHINE = { gpu: 'G', driver: '1', cores: 4, date: '2026-01-01' };

test('missing measurements are marked', () => {
  expect(renderPage({}).match(/Not measured yet\./g)).toHaveLength(6);
});

test('violated limits and failures are emphasized', () => {
  const figures = [
    { name: 'slow', unit: 'us', native: 1, remoted: 2, ratio: 2, limit: '<= 1.05', holds: false },
    { name: 'half done', unit: 'us', native: 1 },
  ];
  const page = renderPage({
    gpu: { machine: MACHINE, figures, errors: ['x, remoted: exit status 1\nlong text'] },
  });
  expect(page).toContain('| slow | 1 us | 2 us | 2.000 | <= 1.05: DOES NOT HOLD |');
  expect(page).toContain('| half done | 1 us | failed |  |  |');
  expect(page).toContain('What failed: x, remoted: exit status 1.');
});

test('frameworks whose results differ from native ones are emphasized', () => {
  const frameworks = [
    {
      name: 'a',
      date: '2026-11-27',
      native: { seconds: 1 },
      remoted: { error: 'no' },
      equal: false,
    },
  ];
  expect(renderPage({ frameworks: { machine: MACHINE, frameworks } })).toContain(
    '| a | 1 s | failed |  | NO |  | 2026-11-27 |',
  );
});

test('tenants are listed beside their rate alone and their limit', () => {
  const tenant = {
    mode: 'saturate',
    kernel: 50,
    alone: {},
    sliced: { part: 0.2 },
    shared: { part: 0.5, p99: 1500 },
  };
  const scenarios = [
    {
      name: 'two',
      date: '2026-11-27',
      tenants: [tenant, tenant],
      limit: 'total >= 0.97',
      holds: true,
      got: [0.98765],
    },
  ];
  const page = renderPage({ sharing: { machine: MACHINE, scenarios } });
  expect(page).toContain(
    '| 0.200 + 0.200 | 0.500 (1.5) + 0.500 (1.5) | total >= 0.97: holds (0.988) | 2026-11-27 |',
  );
  const besideMps = [
    { name: 'small', date: '2026-11-27', tenants: [tenant], sliced_is: 'native MPS' },
  ];
  expect(renderPage({ sharing: { machine: MACHINE, scenarios: besideMps } })).toContain(
    '| small | native MPS: 0.200 | 0.500 (1.5) |  | 2026-11-27 |',
  );
});

test.each(reportFiles())(
  '$file is current: run `node test/dist/bench/report.js`',
  ({ file, text }) => {
    expect(readFileSync(file, 'utf8')).toBe(text);
  },
);

test('a bar chart has a bar for each value, and escapes names', () => {
  const svg = renderBarChart({
    title: 'a < b',
    axis: 'ms',
    series: ['x', 'y'],
    groups: [{ name: 'g', values: [1, 0.25] }],
    reference: { value: 1, label: 'native' },
  });
  expect(svg).toContain('<title>a &lt; b</title>');
  expect(
    [...svg.matchAll(/width="([\d.]+)" height="12" fill="#/g)].map(([, width]) => width),
  ).toEqual(['12', '12', '430', '107.5']);
});

test('memory that leaves: times, results, and the verdict about exchanges', () => {
  const size = { gib: 8, wrong: 0, 'out, first': 3, out: 0.2, 'in, first': 0.2, in: 0.17 };
  const framework = { name: 'train', times: 20, runs: 3, equal: false };
  const suspend = { machine: MACHINE, sizes: [size], frameworks: [framework] };
  const moved = { gib: 8, wrong: 0, 'first move': 5.7, move: 2.4 };
  const move = { machine: MACHINE, sizes: [moved], frameworks: [] };
  const pair = {
    gib: 98,
    'seconds of a turn': 20.2,
    'ratio, strict turns': 0.89,
    'ratio, always': 0.93,
    wrong: 0,
  };
  const filed = { gib: 8, wrong: 0, out: 25, in: 24 };
  const checkpoint = { machine: MACHINE, sizes: [filed], frameworks: [] };
  const page = renderPage({ suspend, move, checkpoint, oversubscribe: { machine: MACHINE, pair } });
  expect(page).toContain('| 8 GiB | 3 s | 0.2 s | 0.17 s | 0 |');
  expect(page).toContain('| train | 20 | NO |');
  expect(page).toContain('| 8 GiB | 5.7 s | 2.4 s | 0 |');
  expect(page).toContain('| 8 GiB | 25 s | 24 s | 0 |');
  expect(page).toContain('each computes 20 s in turns | 0.89 | >= 0.9: DOES NOT HOLD |');
  expect(page).toContain('both always compute | 0.93 | >= 0.9: holds |');
});
