import type { Definition } from '../definitions.js';
import { API_VERSION, GROUP, type UsageObject, VERSION } from '../resources.js';

export type AnyDefinition = Pick<Definition<UsageObject>, 'name' | 'singular' | 'shortName' | 'kind' | 'namespaced' | 'description'>;

const GROUP_VERSION = { groupVersion: API_VERSION, version: VERSION };

const API_GROUP = { name: GROUP, versions: [GROUP_VERSION], preferredVersion: GROUP_VERSION };

export function apiGroupList(): object {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: [API_GROUP] };
}

export function apiGroup(): object {
  return { kind: 'APIGroup', apiVersion: 'v1', ...API_GROUP };
}

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
