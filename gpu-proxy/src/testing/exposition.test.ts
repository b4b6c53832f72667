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
  ['a missing end of line', `${HEAD}a_total 1`],
  ['a sample without a family', 'a_total 1\n'],
  ['a sample of another family', `${HEAD}b_total 1\n`],
  ['a duplicate series', `${HEAD}a_total{x="1"} 1\na_total{x="1"} 2\n`],
  ['a duplicate family', `${HEAD}${HEAD}`],
  ['a type after samples', `${HEAD}a_total 1\n# TYPE a_total counter\n`],
  ['a duplicate label', `${HEAD}a_total{x="1",x="2"} 1\n`],
  ['an unescaped quote', `${HEAD}a_total{x="""} 1\n`],
  ['an invalid escape', `${HEAD}a_total{x="\\x"} 1\n`],
  ['no value', `${HEAD}a_total \n`],
  ['an invalid value', `${HEAD}a_total undefined\n`],
  ['a bucket of a metric that is not a histogram', `${HEAD}a_total_bucket{le="1"} 1\n`],
])('parseExposition() refuses %s', (_, text) => {
  expect(() => parseExposition(text)).toThrow();
});
