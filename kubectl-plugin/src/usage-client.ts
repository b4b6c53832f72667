import { setTimeout as sleep } from 'node:timers/promises';
import { API_VERSION, type NodeGpuUsage, type PodGpuUsage, type UsageObject } from '@nvidia-virtual/usage-api/resources';
import { ApiClient, ApiError, type ApiTarget } from './cluster/api-client.js';
import { linesOf } from './cluster/lines.js';
import { explain, isAway, type Subject } from './errors.js';

/** What is asked for. */
export interface Selection {
  /** Undefined: all. */
  readonly namespace?: string | undefined;
  readonly labels?: string | undefined;
  readonly fields?: string | undefined;
}

export interface List<T> {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items: readonly T[];
}

export interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: T;
}

const PAGE = 500;
/** Milliseconds between attempts: until the API server has learnt which replicas there are after one ended. */
const PAUSES = [250, 500, 1000, 2000];

/** Reads the usage API. All that fails is a PluginError. */
export class UsageClient {
  readonly #client: ApiClient;
  readonly #timeout: number;
  readonly #warned = new Set<string>();

  /** @param warn hears, once each, what the API wants to be said to a person. */
  constructor(
    target: ApiTarget,
    timeout: number,
    readonly warn: (sentence: string) => void,
  ) {
    this.#client = new ApiClient(target);
    this.#timeout = timeout;
  }

  pods(selection: Selection): Promise<List<PodGpuUsage>> {
    return this.#list<PodGpuUsage>('podgpuusages', selection);
  }

  pod(namespace: string, name: string): Promise<PodGpuUsage> {
    return this.#get<PodGpuUsage>({ resource: 'podgpuusages', namespace, name });
  }

  nodes(selection: Selection): Promise<List<NodeGpuUsage>> {
    return this.#list<NodeGpuUsage>('nodegpuusages', selection);
  }

  node(name: string): Promise<NodeGpuUsage> {
    return this.#get<NodeGpuUsage>({ resource: 'nodegpuusages', name });
  }

  /** What changes after a list was made; ends when what happened since is not known any more, and the list is to be made again. */
  async *changes<T extends UsageObject>(
    resource: Subject['resource'],
    selection: Selection,
    resourceVersion: string,
  ): AsyncGenerator<WatchEvent<T>> {
    let version = resourceVersion;
    for (;;) {
      const watch = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion: version };
      try {
        const path = pathOf({ resource, ...selection }, watch);
        const stream = await patiently(() => this.#client.open(path, { timeout: this.#timeout }));
        for await (const line of linesOf(stream)) {
          const event = JSON.parse(line) as WatchEvent<T>;
          version = event.object.metadata.resourceVersion ?? version;
          if (event.type !== 'BOOKMARK') yield event;
        }
      } catch (error) {
        if (error instanceof ApiError && error.code === 410) return;
        if (!isCut(error)) throw explain(error, { server: this.#client.server, resource, namespace: selection.namespace });
      }
    }
  }

  close(): void {
    this.#client.close();
  }

  async #list<T>(resource: Subject['resource'], selection: Selection): Promise<List<T>> {
    const items: T[] = [];
    let rest: string | undefined;
    for (;;) {
      const more: Record<string, string> = rest === undefined ? {} : { continue: rest };
      const page: List<T> = await this.#read({ resource, ...selection }, { limit: String(PAGE), ...more });
      items.push(...page.items);
      rest = page.metadata.continue || undefined;
      if (rest === undefined) return { ...page, items };
    }
  }

  #get<T>(subject: Omit<Subject, 'server'>): Promise<T> {
    return this.#read<T>(subject, {});
  }

  async #read<T>(subject: Omit<Subject, 'server'> & Selection, query: Record<string, string>): Promise<T> {
    try {
      const path = pathOf(subject, query);
      const { body, headers } = await patiently(() => this.#client.answer<T>(path, { timeout: this.#timeout }));
      this.#tellWarnings(headers['warning'] ?? '');
      return body;
    } catch (error) {
      throw explain(error, { server: this.#client.server, ...subject });
    }
  }

  #tellWarnings(header: string): void {
    for (const [, quoted = ''] of header.matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)) {
      const sentence = quoted.replaceAll(/\\(.)/g, '$1');
      if (!this.#warned.has(sentence)) this.warn(sentence);
      this.#warned.add(sentence);
    }
  }
}

function pathOf({ resource, namespace, name, labels, fields }: Omit<Subject, 'server'> & Selection, query: Record<string, string>): string {
  const place = namespace === undefined ? resource : `namespaces/${encodeURIComponent(namespace)}/${resource}`;
  const selectors = { ...(labels ? { labelSelector: labels } : {}), ...(fields ? { fieldSelector: fields } : {}) };
  const parameters = new URLSearchParams({ ...selectors, ...query }).toString();
  const object = name === undefined ? '' : `/${encodeURIComponent(name)}`;
  return `/apis/${API_VERSION}/${place}${object}${parameters === '' ? '' : `?${parameters}`}`;
}

/** Who is away for a moment only is asked again. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (const pause of PAUSES) {
    try {
      return await ask();
    } catch (error) {
      if (!isAway(error)) throw error;
    }
    await sleep(pause);
  }
  return ask();
}

/** A replica ended in the middle of a watch: the other one goes on. */
function isCut(error: unknown): boolean {
  return error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ECONNRESET';
}
