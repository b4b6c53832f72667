import { setTimeout as sleep } from 'node:timers/promises';
import {
  API_VERSION,
  type NodeGpuUsage,
  type PodGpuUsage,
  type UsageObject,
} from '@nvidia-virtual/usage-api/resources';
import { explain, isAway, KubectlError, type Subject } from './errors.js';
import type { Kubectl } from './kubectl.js';

/** Selects objects. */
export interface Selection {
  /** Undefined: all namespaces. */
  readonly namespace?: string | undefined;
  readonly labels?: string | undefined;
  readonly fields?: string | undefined;
}

export interface List<T> {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly resourceVersion?: string };
  readonly items: readonly T[];
}

interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: T;
}

/**
 * Milliseconds between retries. They cover the time until the API server notices an ended replica.
 */
const PAUSES = [250, 500, 1000, 2000];

/** Client of the usage API. */
export class UsageClient {
  readonly #kubectl: Kubectl;
  readonly #pauses: readonly number[];

  /** @param pauses milliseconds between retries */
  constructor(kubectl: Kubectl, pauses: readonly number[] = PAUSES) {
    this.#kubectl = kubectl;
    this.#pauses = pauses;
  }

  pods(selection: Selection): Promise<List<PodGpuUsage>> {
    return this.#read({ resource: 'podgpuusages', ...selection });
  }

  pod(namespace: string, name: string): Promise<PodGpuUsage> {
    return this.#read({ resource: 'podgpuusages', namespace, name });
  }

  nodes(selection: Selection): Promise<List<NodeGpuUsage>> {
    return this.#read({ resource: 'nodegpuusages', ...selection });
  }

  node(name: string): Promise<NodeGpuUsage> {
    return this.#read({ resource: 'nodegpuusages', name });
  }

  /**
   * Yields changes after a list. Ends if the version has expired; then list again.
   */
  async *changes<T extends UsageObject>(
    resource: Subject['resource'],
    selection: Selection,
    resourceVersion: string,
  ): AsyncGenerator<WatchEvent<T>> {
    let version = resourceVersion;
    let pauses = [...this.#pauses];
    for (;;) {
      const watch = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion: version };
      try {
        for await (const line of this.#kubectl.lines(pathOf({ resource, ...selection }, watch))) {
          const event = JSON.parse(line) as WatchEvent<T>;
          version = event.object.metadata.resourceVersion ?? version;
          pauses = [...this.#pauses];
          if (event.type !== 'BOOKMARK') yield event;
        }
      } catch (error) {
        if (error instanceof KubectlError && error.reason === 'Expired') return;
        const pause = isCut(error) ? pauses.shift() : undefined;
        if (pause === undefined) throw explain(error, { resource, namespace: selection.namespace });
        await sleep(pause);
      }
    }
  }

  async #read<T>(subject: Subject & Selection): Promise<T> {
    try {
      return JSON.parse(await this.#get(pathOf(subject))) as T;
    } catch (error) {
      throw explain(error, subject);
    }
  }

  /** Retries if the API is temporarily unreachable. */
  async #get(path: string): Promise<string> {
    for (const pause of this.#pauses) {
      try {
        return await this.#kubectl.get(path);
      } catch (error) {
        if (!isAway(error)) throw error;
      }
      await sleep(pause);
    }
    return this.#kubectl.get(path);
  }
}

function pathOf(
  { resource, namespace, name, labels, fields }: Subject & Selection,
  query: Record<string, string> = {},
): string {
  const place =
    namespace === undefined ? resource : `namespaces/${encodeURIComponent(namespace)}/${resource}`;
  const selectors = {
    ...(labels ? { labelSelector: labels } : {}),
    ...(fields ? { fieldSelector: fields } : {}),
  };
  const parameters = new URLSearchParams({ ...selectors, ...query }).toString();
  const object = name === undefined ? '' : `/${encodeURIComponent(name)}`;
  return `/apis/${API_VERSION}/${place}${object}${parameters === '' ? '' : `?${parameters}`}`;
}

/** Whether the watch broke, for example because its replica or the connection ended. */
function isCut(error: unknown): boolean {
  return error instanceof KubectlError && (error.reason === undefined || isAway(error));
}
