import { API_VERSION, GROUP, VERSION } from '../resources.js';
import type { AnyDefinition } from './discovery.js';
import { SCHEMAS } from './schemas.js';

const INFO = { title: 'nvidia-virtual usage', version: VERSION };
const PREFIX = 'io.nvidia-virtual.usage.v1alpha1';
const SELECTORS = ['labelSelector', 'fieldSelector', 'continue'].map((name) => ({ name, in: 'query', schema: { type: 'string' } }));

/** /openapi/v2: the kinds, for `kubectl explain` and whoever else reads it. */
export function openApiV2(definitions: readonly AnyDefinition[]): object {
  return { swagger: '2.0', info: INFO, paths: {}, definitions: schemas(definitions) };
}

/** /openapi/v3: where the document of each group is. */
export function openApiV3Index(): object {
  return { paths: { [`apis/${API_VERSION}`]: { serverRelativeURL: `/openapi/v3/apis/${API_VERSION}` } } };
}

export function openApiV3(definitions: readonly AnyDefinition[]): object {
  const paths = Object.fromEntries(definitions.flatMap(pathsOf));
  return { openapi: '3.0.0', info: INFO, paths, components: { schemas: schemas(definitions) } };
}

function schemas(definitions: readonly AnyDefinition[]): Record<string, object> {
  return Object.fromEntries(
    definitions.map(({ kind }) => [
      `${PREFIX}.${kind}`,
      { ...SCHEMAS[kind], 'x-kubernetes-group-version-kind': [{ group: GROUP, version: VERSION, kind }] },
    ]),
  );
}

function pathsOf({ name, kind, namespaced }: AnyDefinition): [string, object][] {
  const root = `/apis/${API_VERSION}`;
  const place = namespaced ? `${root}/namespaces/{namespace}/${name}` : `${root}/${name}`;
  const namespace = namespaced ? [parameter('namespace')] : [];
  const one = { ...operation('get', kind), parameters: [...namespace, parameter('name')] };
  const many = { ...operation('list', kind), parameters: [...namespace, ...SELECTORS] };
  return [
    [place, { get: many }],
    [`${place}/{name}`, { get: one }],
  ];
}

function parameter(name: string): object {
  return { name, in: 'path', required: true, schema: { type: 'string' } };
}

function operation(action: 'get' | 'list', kind: string): object {
  const content = { 'application/json': { schema: { $ref: `#/components/schemas/${PREFIX}.${kind}` } } };
  return {
    operationId: `${action}${kind}`,
    responses: { 200: { description: 'OK', ...(action === 'get' ? { content } : {}) } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group: GROUP, version: VERSION, kind },
  };
}
