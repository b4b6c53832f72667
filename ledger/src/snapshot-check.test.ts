import type { NodeSnapshot } from './records.js';
import { problemOfSnapshot } from './snapshot-check.js';
import { snapshot } from './testing/snapshots.js';

const OWNER = { namespace: 'n', pod: 'p', podUid: 'u', container: 'c' };

/** A snapshot as JSON, changed at one place. */
function changed(path: string, value: unknown): unknown {
  const whole = JSON.parse(JSON.stringify(snapshot())) as Record<string, unknown>;
  const names = path.split('.');
  const last = names.pop() ?? '';
  const parent = names.reduce((at, name) => at[name] as Record<string, unknown>, whole);
  parent[last] = value;
  return whole;
}

test('the snapshots that nodes write are valid', () => {
  const owned = (suspendedBy?: readonly string[]) =>
    changed('allocations.0.specification', {
      ...(snapshot().allocations[0] as NodeSnapshot['allocations'][number]).specification,
      ...{ owner: OWNER, suspendedBy },
    });
  for (const one of [snapshot(), owned(), owned(['pod'])])
    expect(problemOfSnapshot(JSON.parse(JSON.stringify(one)), 'node-1')).toBeUndefined();
});

test('a snapshot of another node is not valid', () => {
  expect(problemOfSnapshot(snapshot(), 'node-2')).toBe('it is of another node');
});

test.each<[string, unknown]>([
  ['gpus', null],
  ['gpus.0', 'GPU-1'],
  ['gpus.0.index', '0'],
  ['gpus.0.name', '\u001b[2J'],
  ['allocations.0.specification.policy', 'burst\n'],
  ['allocations.0.specification.id', 'x'.repeat(2000)],
  ['gpus.0.memory', Number.POSITIVE_INFINITY],
  ['allocations', {}],
  ['allocations', Array.from({ length: 200_000 }, () => snapshot().allocations[0])],
  ['allocations.0', null],
  ['allocations.0.specification', undefined],
  ['allocations.0.specification.gpus', 7],
  ['allocations.0.specification.gpus.0', null],
  ['allocations.0.specification.owner', 'a'],
  ['allocations.0.specification.suspendedBy', 'pod'],
  ['allocations.0.time.granted', '1'],
  ['allocations.0.sessions.0', null],
  ['allocations.0.sessions.0.use.memory', '9'],
  ['allocations.0.suspensionRefused', {}],
])('a snapshot with strange %s is not valid', (path, value) => {
  const place = path.replaceAll(/\.(\d+)/g, '[$1]');
  expect(problemOfSnapshot(changed(path, value), 'node-1')).toMatch(`its snapshot.${place}`);
});
