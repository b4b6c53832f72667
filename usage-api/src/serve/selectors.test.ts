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
  ['! absent , size > 9', true],
  ['size<10', false],
])('labels %j: %j', (selector, expected) => {
  expect(labelSelector(selector)(LABELS)).toBe(expected);
  expect(labelSelector(selector)(undefined)).toBe(
    ['', 'absent!=x', 'app!=train', 'app notin (serve,eval)', 'absent notin (x)', '!app'].includes(selector),
  );
});

test.each(['=x', 'a b', 'a in x', 'a in (b', 'app=train,', 'a=b=c', '-a=b', '!'])('labels %j are refused with a sentence', (selector) => {
  expect(() => labelSelector(selector)).toThrow(`The label selector "${selector}" is not understood: `);
});

const fields = (text: string) => fieldSelector<{ node: string }>(text, { node: ({ node }) => node });

test('fields are compared, and an unknown one is refused', () => {
  expect([fields('node=a')({ node: 'a' }), fields('node!=a')({ node: 'a' }), fields('')({ node: 'a' })]).toEqual([true, false, true]);
  expect(() => fields('toString=x')).toThrow('allowed are =, == and != with node');
});
