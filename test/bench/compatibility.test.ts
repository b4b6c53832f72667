import { renderCompatibility } from './compatibility.js';

const MACHINE = { gpu: 'G', driver: '1', cores: 4, date: '2026-01-01' };

test('missing runs are marked', () => {
  expect(renderCompatibility({}).match(/Not run yet\./g)).toHaveLength(3);
});

test('failures and differences are emphasized, with the side that failed', () => {
  const good = { versions: { torch: '2' } };
  const bad = { error: 'no' };
  const date = '2026-01-02';
  const frameworks = [
    { name: 'a', subject: 'A', date, native: good, remoted: good, equal: true, varying: ['b'] },
    { name: 'b', date, native: good, remoted: bad, equal: false },
    { name: 'c', date, native: bad, remoted: bad, equal: false },
    { name: 'd', date, native: good, remoted: good, equal: false },
  ];
  const programs = [{ name: 'e', subject: 'E' }];
  const page = renderCompatibility({ programs, frameworks: { machine: MACHINE, frameworks } });
  for (const row of [
    '| A | torch 2 | equal; b does not repeat natively | 2026-01-02 |',
    '| b | torch 2 | FAILS | 2026-01-02 |',
    '| c |  | fails natively | 2026-01-02 |',
    '| d | torch 2 | DIFFERENT | 2026-01-02 |',
    '| E |  | not measured |  |',
  ])
    expect(page).toContain(row);
});

test('a runtime works, gives the expected error, or another one', () => {
  const insufficient = 'cudaErrorInsufficientDriver';
  const works = { release: '12.4', driver: '13.0', expected: 'cudaSuccess' };
  const runtimes = [
    { ...works, status: 'cudaSuccess', right: true },
    { ...works, status: 'cudaSuccess', right: false },
    { release: '13.0', driver: '12.4', expected: insufficient, status: insufficient, right: false },
  ];
  const page = renderCompatibility({ runtimes: { date: '2026-01-01', runtimes } });
  expect(page).toContain('| 12.4 | 13.0 | works |');
  expect(page).toContain('| 12.4 | 13.0 | `cudaSuccess`, expected `cudaSuccess` |');
  expect(page).toContain(`| 13.0 | 12.4 | \`${insufficient}\` |`);
});

test('public programs on the simulated GPU have counts, and failures are emphasized', () => {
  const program = { name: 'suite 1.0', what: 'tests', passed: 5 };
  const programs = [
    { ...program, failedAsExpected: 2, failed: 0 },
    { ...program, failed: 1 },
  ];
  const page = renderCompatibility({ simulated: [{ date: '2026-01-01', programs }] });
  expect(page).toContain('| suite 1.0 | tests | 5 passed, 2 failed as expected | 2026-01-01 |');
  expect(page).toContain('| 5 passed, 1 FAILED |');
});
