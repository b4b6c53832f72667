import { parseExposition } from './exposition.js';

const HEAD = '# HELP a_total Help.\n# TYPE a_total counter\n';

test('parseExposition() reads families, labels and values', () => {
  const families = parseExposition(
    `${HEAD}a_total{x="\\"\\\\\\n",y="1"} 1.5e3\n\n# HELP b B.\n# TYPE b gauge\nb +Inf\n`,
  );
  expect(Object.fromEntries(families)).toEqual({
    a_total: {
      type: 'counter',
      help: 'Help.',
      samples: [{ name: 'a_total', labels: { x: '"\\\n', y: '1' }, value: 1500 }],
    },
    b: { type: 'gauge', help: 'B.', samples: [{ name: 'b', labels: {}, value: Infinity }] },
  });
});

test.each([
  ['no end of line', `${HEAD}a_total 1`],
  ['a sample of nothing', 'a_total 1\n'],
  ['a sample of another', `${HEAD}b_total 1\n`],
  ['a series twice', `${HEAD}a_total{x="1"} 1\na_total{x="1"} 2\n`],
  ['a family twice', `${HEAD}${HEAD}`],
  ['a type after samples', `${HEAD}a_total 1\n# TYPE a_total counter\n`],
  ['a label twice', `${HEAD}a_total{x="1",x="2"} 1\n`],
  ['a quote that is not escaped', `${HEAD}a_total{x="""} 1\n`],
  ['a wrong escape', `${HEAD}a_total{x="\\x"} 1\n`],
  ['no value', `${HEAD}a_total \n`],
  ['a value that is none', `${HEAD}a_total undefined\n`],
  ['a bucket of what is no histogram', `${HEAD}a_total_bucket{le="1"} 1\n`],
])('parseExposition() refuses %s', (_, text) => {
  expect(() => parseExposition(text)).toThrow();
});
