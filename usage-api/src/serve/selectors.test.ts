import { fieldSelector, labelSelector } from './selectors.js';

const LABELS = { app: 'train', 'example.com/tier': 'a-1', size: '10', empty: '' };

test.each([
  ['', true],
  ['app=train', true],
  ['app==train,example.com/tier=a-1', true],
  ['app!=train', false],
  ['absent!=x', true],
  ['app in (serve, train)', true],
  ['app in (serve),size', false],
  ['app notin (serve,eval)', true],
  ['absent notin (x)', true],
  ['empty=', true],
  ['app', true],
  ['!app', false],
  ['! absent , size', true],
])('labels %j: %j', (selector, expected) => {
  expect(labelSelector(selector)(LABELS)).toBe(expected);
  expect(labelSelector(selector)(undefined)).toBe(
    ['', 'absent!=x', 'app!=train', 'app notin (serve,eval)', 'absent notin (x)', '!app'].includes(
      selector,
    ),
  );
});

test.each([
  ['constructor', false],
  ['!constructor', true],
  ['toString notin (x)', true],
  ['valueOf in (x)', false],
])('labels %j, which each object inherits: %j', (selector, expected) => {
  expect(labelSelector(selector)(LABELS)).toBe(expected);
});

test.each(['=x', 'a b', 'a in x', 'a in (b', 'app=train,', 'a=b=c', '-a=b', 'a>1', '!'])(
  'the label selector %j is refused',
  (selector) => {
    expect(() => labelSelector(selector)).toThrow(`The label selector "${selector}" is invalid: `);
  },
);

test.each([
  ['a'.repeat(4097), 'it has 4097 characters, the limit is 4096'],
  [`${'a,'.repeat(100)}a`, 'it has 101 requirements, the limit is 100'],
])('a selector that exceeds a limit is refused', (selector, said) => {
  expect(() => labelSelector(selector)).toThrow(said);
  expect(() => fields(selector)).toThrow(said);
});

const fields = (text: string) =>
  fieldSelector<{ node: string }>(text, { node: ({ node }) => node });

test('a field selector compares fields and refuses unknown ones', () => {
  expect([
    fields('node=a')({ node: 'a' }),
    fields('node!=a')({ node: 'a' }),
    fields('')({ node: 'a' }),
  ]).toEqual([true, false, true]);
  expect(() => fields('toString=x')).toThrow('it must use =, == or != with one of node');
});
