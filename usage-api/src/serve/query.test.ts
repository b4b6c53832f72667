import { POD_USAGE } from '../definitions.js';
import { readQuery, wantsTable, writeContinue } from './query.js';

const read = (text: string) => readQuery(new URLSearchParams(text), POD_USAGE);

test('parses the parameters of kubectl get -w', () => {
  expect(read('limit=500')).toMatchObject({
    limit: 500,
    watch: false,
    since: undefined,
    after: undefined,
    includeObject: 'Metadata',
  });
  expect(
    read('watch=true&resourceVersion=123&allowWatchBookmarks=true&timeoutSeconds=5'),
  ).toMatchObject({
    ...{ watch: true, since: 123, bookmarks: true, timeout: 5000 },
  });
  expect(read('watch=1&resourceVersion=0')).toMatchObject({ watch: true, since: undefined });
});

test('a continue token continues a list', () => {
  expect(read(`continue=${writeContinue('team-a/x')}`).after).toBe('team-a/x');
  expect(() => read('continue=abc')).toThrow(
    'The continue token is invalid. List again from the beginning.',
  );
});

test.each([
  'limit=-1',
  'watch=maybe',
  'resourceVersion=abc',
  'includeObject=None',
  'watch=true&sendInitialEvents=true',
  'timeoutSeconds=1.5',
])('%s is refused', (text) => {
  expect(() => read(text)).toThrow(/ is ".*", but must be /);
});

test.each([
  [undefined, false],
  ['application/json', false],
  ['application/json;as=Table;v=v1;g=meta.k8s.io,application/json', true],
  ['application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json', false],
  ['application/vnd.kubernetes.protobuf,application/json', false],
])('Accept: %s', (accept, expected) => {
  expect(wantsTable({ accept })).toBe(expected);
});
