import type { Definition } from '../definitions.js';
import { API_VERSION, type UsageObject } from '../resources.js';

export type AnyDefinition = Pick<
  Definition<UsageObject>,
  'name' | 'singular' | 'shortName' | 'kind' | 'namespaced'
>;

/** The API server makes the lists of groups and versions of it. */
export function apiResourceList(definitions: readonly AnyDefinition[]): object {
  const resources = definitions.map(({ name, singular, shortName, kind, namespaced }) => ({
    name,
    singularName: singular,
    shortNames: [shortName],
    kind,
    namespaced,
    // Nothing can be deleted, so the controllers of namespaces, quotas and garbage leave it alone.
    verbs: ['get', 'list', 'watch'],
  }));
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: API_VERSION, resources };
}
