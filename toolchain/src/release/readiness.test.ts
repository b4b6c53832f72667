import { changesOf, findObstacles, type TreeState } from './readiness.js';

const READY: TreeState = {
  version: '1.2.0',
  changes: '',
  head: 'a1',
  tagged: undefined,
  changelog: '# Changes\n\n## 1.2.0, 2026-11-26\n\n- More.\n\n## 1.1.0\n\n- Less.\n',
  otherVersions: [],
};

test('a clean tree with changes of its version can be released', () => {
  expect(findObstacles(READY)).toEqual([]);
  expect(findObstacles({ ...READY, tagged: 'a1' })).toEqual([]);
});

test.each<[string, Partial<TreeState>, string]>([
  ['has changed files', { changes: ' M a.ts\n' }, 'Files differ from the last commit'],
  ['has a version that was released', { tagged: 'b2' }, 'The tag v1.2.0 is at b2'],
  ['has several versions', { otherVersions: ['Chart.yaml has 1.1.0.'] }, 'Chart.yaml has'],
  ['has no changes', { changelog: '## 1.2.0\n\n## 1.1.0\n\n- a\n' }, 'has no changes of 1.2.0'],
  ['has another version', { changelog: '## 1.2.0-rc1\n\n- a\n' }, 'has no changes of 1.2.0'],
  [
    'has unreleased changes',
    { changelog: `## Unreleased\n\n- b\n\n${READY.changelog}` },
    'CHANGELOG.md has unreleased changes',
  ],
])('a tree that %s cannot be released', (_, difference, sentence) => {
  expect(findObstacles({ ...READY, ...difference })).toEqual([expect.stringContaining(sentence)]);
});

test('changesOf() returns the section of one version', () => {
  expect(changesOf('1.2.0', READY.changelog)).toBe('- More.');
  expect(changesOf('1.1.0', READY.changelog)).toBe('- Less.');
});
