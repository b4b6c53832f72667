import { API_VERSION, GROUP, VERSION } from '../resources.js';
import type { AnyDefinition } from './discovery.js';
import { SCHEMAS } from './schemas.js';

const INFO = { title: 'nvidia-virtual usage', version: VERSION };
const PREFIX = 'io.nvidia-virtual.usage.v1alpha1';

/** /openapi/v3: the index of the documents of each group. */
export function openApiIndex(): object {
  return {
    paths: { [`apis/${API_VERSION}`]: { serverRelativeURL: `/openapi/v3/apis/${API_VERSION}` } },
  };
}

/** The part of the document that `kubectl explain` needs. */
export function openApi(definitions: readonly AnyDefinition[]): object {
  return {
    openapi: '3.0.0',
    info: INFO,
    paths: Object.fromEntries(definitions.map(pathOf)),
    components: { schemas: Object.fromEntries(definitions.map(schemaOf)) },
  };
}

function schemaOf({ kind }: AnyDefinition): [string, object] {
  const names = [{ group: GROUP, version: VERSION, kind }];
  return [`${PREFIX}.${kind}`, { ...SCHEMAS[kind], 'x-kubernetes-group-version-kind': names }];
}

/** kubectl looks up the kind of a resource by its path. */
function pathOf({ name, kind, namespaced }: AnyDefinition): [string, object] {
  const get = {
    responses: { 200: { description: 'OK' } },
    'x-kubernetes-group-version-kind': { group: GROUP, version: VERSION, kind },
  };
  const place = namespaced ? `namespaces/{namespace}/${name}` : name;
  return [`/apis/${API_VERSION}/${place}`, { get }];
}
