import type { ChartValue, Schema, ValuesSection } from './values-file.js';

interface Group {
  readonly properties: Record<string, Schema | Group>;
}

/**
 * values.schema.json: what Helm checks values against before it renders anything. Unknown keys are
 * refused, so that a typing mistake is seen.
 */
export function valuesSchema(sections: readonly ValuesSection[]): string {
  const root: Group = { properties: {} };
  for (const value of sections.flatMap(({ values }) => values))
    put(root, value.key.split('.'), schemaOf(value));
  // Helm's own, in every chart that is part of another one.
  root.properties['global'] = { type: 'object' };
  return `${JSON.stringify(closed(root), undefined, 2)}\n`;
}

/** The kind of the default, unless `@schema` says another one. */
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
