import { type Content, decode, difference, encode, isEmpty, NOTHING, sizes, TABLES } from './content.js';
import { snapshot } from './testing/snapshots.js';

/** What the script in Redis does with a difference. */
function apply(content: Content, changes: ReturnType<typeof difference>): Content {
  const next = TABLES.map((table) => {
    const rows = new Map([...content[table], ...changes[table].set]);
    for (const field of changes[table].remove) rows.delete(field);
    return [table, rows];
  });
  return Object.fromEntries(next) as unknown as Content;
}

const SNAPSHOTS = [
  snapshot(),
  snapshot({ allocations: 0 }),
  snapshot({ gpus: [] }),
  snapshot({ allocations: 3, sessions: 1 }),
  snapshot({ gpus: ['GPU-2', 'GPU-1'], memory: 1 }),
];

test('decode() gives back what encode() was given', () => {
  for (const one of SNAPSHOTS) expect(decode('node-1', encode(one))).toEqual(one);
});

test('decode() puts GPUs, allocations and sessions in order, whatever the order of the rows', () => {
  const one = snapshot({ allocations: 12, sessions: 12, gpus: ['GPU-2', 'GPU-1'] });
  const content = encode(one);
  const reversed = Object.fromEntries(TABLES.map((table) => [table, new Map([...content[table]].reverse())])) as unknown as Content;
  expect(decode('node-1', reversed)).toEqual(one);
});

test('decode() refuses rows without figures, and what is no JSON', () => {
  const content = encode(snapshot());
  expect(() => decode('node-1', { ...content, use: new Map() })).toThrow('0000000000000001/1 has no figures');
  expect(() => decode('node-1', { ...content, gpus: new Map([['GPU-1', '{']]) })).toThrow(SyntaxError);
});

test('a difference leads from any snapshot to any other', () => {
  for (const from of [NOTHING, ...SNAPSHOTS.map(encode)]) {
    for (const to of SNAPSHOTS.map(encode)) expect(apply(from, difference(from, to))).toEqual(to);
  }
});

test('the difference between equals is empty, and that of one figure is one row', () => {
  expect(isEmpty(difference(encode(snapshot()), encode(snapshot())))).toBe(true);
  const [one, other] = [encode(snapshot()), encode(snapshot({ sessions: 3 }))];
  const changed = { ...other, use: new Map(other.use).set('0000000000000001/2', '{}') };
  const changes = difference(one, changed);
  expect(isEmpty(changes)).toBe(false);
  expect(TABLES.map((table) => changes[table].set.length + changes[table].remove.length)).toEqual([0, 0, 0, 0, 1]);
});

test('sizes() counts the rows of each table', () => {
  expect(sizes(encode(snapshot({ gpus: ['GPU-1'], allocations: 2, sessions: 3 })))).toBe('1 2 2 6 6');
});
