import type { Definition } from '../definitions.js';
import { API_VERSION, type UsageObject } from '../resources.js';

export type AnyDefinition = Pick<
  Definition<UsageObject>,
  'name' | 'singular' | 'shortName' | 'kind' | 'namespaced'
>;

/** The API server builds its lists of groups and versions from this document. */
export function apiResourceList(definitions: readonly AnyDefinition[]): object {
  const resources = definitions.map(({ name, singular, shortName, kind, namespaced }) => ({
    name,
    singularName: singular,
    shortNames: [shortName],
    kind,
    namespaced,
    // Without `delete`, the namespace, quota and garbage collection controllers ignore it.
    verbs: ['get', 'list', 'watch'],
  }));
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: API_VERSION, resources };
}
