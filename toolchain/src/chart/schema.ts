import type { ChartValue, Schema, ValuesSection } from './values-file.js';

interface Group {
  readonly properties: Record<string, Schema | Group>;
}

/**
 * values.schema.json, with which Helm validates values before it renders. Unknown keys are
 * refused, to detect typing mistakes.
 */
export function valuesSchema(sections: readonly ValuesSection[]): string {
  const root: Group = { properties: {} };
  for (const value of sections.flatMap(({ values }) => values))
    put(root, value.key.split('.'), schemaOf(value));
  // Helm sets it in every subchart.
  root.properties['global'] = { type: 'object' };
  return `${JSON.stringify(closed(root), undefined, 2)}\n`;
}

/** The type of the default, unless `@schema` sets another one. */
function schemaOf({ help, default: value, schema }: ChartValue): Schema {
  const kind = 'enum' in schema || 'type' in schema ? {} : { type: kindOf(value) };
  const bound = typeof value === 'number' && !('minimum' in schema) ? { minimum: 0 } : {};
  return { description: help, ...kind, ...bound, ...schema };
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'number' ? 'integer' : typeof value;
}

function put(group: Group, [name = '', ...rest]: readonly string[], schema: Schema): void {
  if (rest.length === 0) {
    group.properties[name] = schema;
    return;
  }
  group.properties[name] ??= { properties: {} };
  put(group.properties[name] as Group, rest, schema);
}

function closed({ properties }: Group): Schema {
  const children = Object.entries(properties).map(([name, child]) => [
    name,
    isGroup(child) ? closed(child) : child,
  ]);
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(children) };
}

function isGroup(child: Schema | Group): child is Group {
  return !('type' in child) && !('enum' in child);
}
