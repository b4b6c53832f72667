import { NODE_USAGE, POD_USAGE } from '../definitions.js';
import { API_VERSION } from '../resources.js';

/** The target of a request path. */
export type Target =
  | { readonly what: 'resources' | 'openapi' | 'openapiGroup' }
  | {
      /** `dashboard`: the page that shows the pods, of all namespaces or one. */
      readonly what: 'pods' | 'nodes' | 'dashboard';
      readonly namespace: string | undefined;
      readonly name: string | undefined;
    };

/** The resource by which roles allow the page. */
export const DASHBOARD = 'dashboard';

const FIXED: Readonly<Record<string, Target>> = {
  [`/apis/${API_VERSION}`]: { what: 'resources' },
  '/openapi/v3': { what: 'openapi' },
  [`/openapi/v3/apis/${API_VERSION}`]: { what: 'openapiGroup' },
};

/** Undefined: the path does not exist. */
export function readPath(path: string): Target | undefined {
  const plain = path.length > 1 ? path.replace(/\/$/, '') : path;
  if (Object.hasOwn(FIXED, plain)) return FIXED[plain];
  const [, , group, version, ...rest] = plain.split('/').map(decode);
  if (`${group}/${version}` !== API_VERSION || rest.includes(undefined)) return undefined;
  const parts = rest as string[];
  const [first, namespace, resource, name] = parts;
  if (first === 'namespaces' && resource === POD_USAGE.name && parts.length <= 4)
    return { what: 'pods', namespace, name };
  if (first === POD_USAGE.name && parts.length === 1)
    return { what: 'pods', namespace: undefined, name: undefined };
  if (first === DASHBOARD && parts.length === 1)
    return { what: 'dashboard', namespace: undefined, name: undefined };
  if (first === 'namespaces' && resource === DASHBOARD && parts.length === 3)
    return { what: 'dashboard', namespace, name };
  if (first === NODE_USAGE.name && parts.length <= 2)
    return { what: 'nodes', namespace: undefined, name: parts[1] };
  return undefined;
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
