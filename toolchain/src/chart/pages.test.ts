import { readFileSync } from 'node:fs';
import path from 'node:path';
import { valuesPage } from './page.js';
import { chartPages } from './pages.js';
import { valuesSchema } from './schema.js';
import { readValuesFile } from './values-file.js';

const VALUES = `# About the file.

# == Boats
#
# All that float.

boat:
  # How many oars,
  # in pairs.
  # @schema {minimum: 2, maximum: 8}
  oars: 4
  sail:
    # Its colour.
    # @schema {enum: [red, white]}
    colour: red
  # Who rows.
  crew: []
  # Where to.
  # @schema {type: object,
  # additionalProperties: {type: string}}
  course: {by: stars}

# == Harbour

# Closed at night.
closed: false
`;

test.each(chartPages())(
  '$file is current: run `node toolchain/dist/chart/main.js`',
  ({ file, text }) => {
    expect([path.basename(file), readFileSync(file, 'utf8')]).toEqual([path.basename(file), text]);
  },
);

test('readValuesFile() takes comments, headings and what @schema says', () => {
  const [boats, harbour] = readValuesFile(VALUES);
  expect(boats).toMatchObject({ title: 'Boats', introduction: 'All that float.' });
  expect(boats?.values.map(({ key, help }) => [key, help])).toEqual([
    ['boat.oars', 'How many oars, in pairs.'],
    ['boat.sail.colour', 'Its colour.'],
    ['boat.crew', 'Who rows.'],
    ['boat.course', 'Where to.'],
  ]);
  expect(boats?.values[0]?.schema).toEqual({ minimum: 2, maximum: 8 });
  expect(harbour).toMatchObject({
    title: 'Harbour',
    introduction: '',
    values: [{ key: 'closed', default: false }],
  });
});

test('readValuesFile() refuses a value that nothing explains', () => {
  expect(() => readValuesFile('# == Boats\n\nboat:\n  oars: 4\n')).toThrow(
    'values.yaml does not explain boat.oars',
  );
});

test('valuesSchema() is closed, and takes the kind from the default', () => {
  const { properties, additionalProperties } = JSON.parse(valuesSchema(readValuesFile(VALUES)));
  expect(additionalProperties).toBe(false);
  expect(properties.boat.additionalProperties).toBe(false);
  expect(properties.boat.properties.oars).toEqual({
    description: 'How many oars, in pairs.',
    type: 'integer',
    minimum: 2,
    maximum: 8,
  });
  expect(properties.boat.properties.sail.properties.colour).toEqual({
    description: 'Its colour.',
    enum: ['red', 'white'],
  });
  expect(properties.boat.properties.crew.type).toBe('array');
  expect(properties.closed.type).toBe('boolean');
});

test('valuesPage() has a row for each value', () => {
  const page = valuesPage(readValuesFile(VALUES));
  expect(page).toContain('| `boat.oars` | `4` | How many oars, in pairs. | 2 to 8 |');
  expect(page).toContain('| `boat.course` | `{ by: stars }` | Where to. |  |');
});
