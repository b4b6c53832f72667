import { compare, parsePrinted } from './figures.js';

const PRINTED = parsePrinted(
  'noise\n{"name": "bare", "nanoseconds": 20}\n{"name": "ours", "value": 30, "unit": "ns"}\n',
);

test('both forms of printed figures are parsed, other lines are skipped', () => {
  expect(PRINTED).toEqual([
    { name: 'bare', value: 20, unit: 'ns' },
    { name: 'ours', value: 30, unit: 'ns' },
  ]);
});

test('a limit includes its value', () => {
  expect(compare(PRINTED, [{ name: 'ours', reference: 'bare', most: 1.5 }])[0]).toMatchObject({
    ratio: 1.5,
    limit: '<= 1.5',
    holds: true,
  });
  expect(compare(PRINTED, [{ name: 'ours', reference: 'bare', most: 1.4 }])[0]?.holds).toBe(false);
  expect(compare(PRINTED, [{ name: 'ours', least: 31 }])[0]).toMatchObject({
    limit: '>= 31',
    holds: false,
  });
});

test('a ratio measured by the program is used', () => {
  const printed = [...PRINTED, ...parsePrinted('{"name": "both", "ratio": 1.2}')];
  const comparison = { name: 'ours', reference: 'bare', measured: 'both', most: 1.3 };
  expect(compare(printed, [comparison])[0]).toMatchObject({ value: 30, ratio: 1.2, holds: true });
});

test('a figure without a limit is neither fulfilled nor violated', () => {
  expect(compare(PRINTED, [{ name: 'bare' }])[0]).toEqual({ name: 'bare', value: 20, unit: 'ns' });
});

test('a missing figure is an error', () => {
  expect(() => compare(PRINTED, [{ name: 'theirs' }])).toThrow('theirs');
});
