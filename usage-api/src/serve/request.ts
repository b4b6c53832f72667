import { NODE_USAGE, POD_USAGE } from '../definitions.js';
import { API_VERSION } from '../resources.js';

/** What a path means. */
export type Target =
  | { readonly what: 'groups' | 'group' | 'resources' | 'openapi2' | 'openapi3' | 'openapi3group' | 'version' | 'alive' | 'ready' }
  | { readonly what: 'pods' | 'nodes'; readonly namespace: string | undefined; readonly name: string | undefined };

const FIXED: Readonly<Record<string, Target>> = {
  '/apis': { what: 'groups' },
  [`/apis/${API_VERSION.split('/')[0]}`]: { what: 'group' },
  [`/apis/${API_VERSION}`]: { what: 'resources' },
  '/openapi/v2': { what: 'openapi2' },
  '/openapi/v3': { what: 'openapi3' },
  [`/openapi/v3/apis/${API_VERSION}`]: { what: 'openapi3group' },
  '/version': { what: 'version' },
  '/healthz': { what: 'alive' },
  '/livez': { what: 'alive' },
  '/readyz': { what: 'ready' },
};

/** Undefined: nothing is there. */
export function readPath(path: string): Target | undefined {
  const plain = path.length > 1 ? path.replace(/\/$/, '') : path;
  if (Object.hasOwn(FIXED, plain)) return FIXED[plain];
  const [, , group, version, ...rest] = plain.split('/').map(decode);
  if (`${group}/${version}` !== API_VERSION || rest.includes(undefined)) return undefined;
  const parts = rest as string[];
  const [first, namespace, resource, name] = parts;
  if (first === 'namespaces' && resource === POD_USAGE.name && parts.length <= 4) return { what: 'pods', namespace, name };
  if (first === POD_USAGE.name && parts.length === 1) return { what: 'pods', namespace: undefined, name: undefined };
  if (first === NODE_USAGE.name && parts.length <= 2) return { what: 'nodes', namespace: undefined, name: parts[1] };
  return undefined;
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
