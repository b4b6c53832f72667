import { text } from 'node:stream/consumers';
import type { CoreV1Event, V1Pod } from '@kubernetes/client-node';
import { lookUntil, PATIENCE_MS, pause } from '../../processes.js';
import type { Cluster } from '../cluster/cluster.js';
import { proxyLogOf } from './node-log.js';

/** The pods of one namespace, as their owner sees them. */
export class Tenants {
  constructor(
    readonly cluster: Cluster,
    readonly namespace: string,
  ) {}

  /**
   * Creates them in the namespace. Pods, of which there are many, are created without kubectl,
   * which needs a quarter of a second to start.
   */
  async apply(...objects: readonly TenantObject[]): Promise<void> {
    for (const body of objects.filter(({ kind }) => kind === 'Pod'))
      await this.cluster.api.request({
        method: 'POST',
        path: this.#podsPath,
        body,
        timeout: PATIENCE_MS,
      });
    const others = objects.filter(({ kind }) => kind !== 'Pod');
    if (others.length > 0)
      await this.cluster.kubectl('-n', this.namespace, 'apply', '-f', this.cluster.write(others));
  }

  /**
   * Creates a pod after the webhook has started. The API server hears of new pods of the webhook a
   * little later, refuses a pod that requests a GPU until then, and its owner retries.
   */
  async applyOnceAdmitted(pod: TenantObject): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await this.apply(pod);
      } catch (error) {
        if (!/failed calling webhook/.test((error as Error).message) || performance.now() > end)
          throw error;
        await pause(200);
      }
    }
  }

  /** Resolves when it is deleted. */
  async delete(...what: readonly string[]): Promise<void> {
    await this.cluster.kubectl('-n', this.namespace, 'delete', ...what, '--timeout=60s');
  }

  /** Deletes an ended pod without waiting. */
  async forget(pod: string): Promise<void> {
    await this.cluster.api.request({ method: 'DELETE', path: `${this.#podsPath}/${pod}` });
  }

  async pods(): Promise<V1Pod[]> {
    return (await this.cluster.api.request<{ items: V1Pod[] }>({ path: this.#podsPath })).items;
  }

  async pod(name: string): Promise<V1Pod> {
    return this.cluster.api.request<V1Pod>({ path: `${this.#podsPath}/${name}` });
  }

  /** Waits until the pod fulfils the condition. @throws Error with its state after the timeout */
  async until(
    name: string,
    what: string,
    holds: (pod: V1Pod) => boolean,
    milliseconds = PATIENCE_MS,
  ): Promise<V1Pod> {
    const pod = await lookUntil(() => this.pod(name), holds, { milliseconds });
    if (!holds(pod)) throw new Error(`pod ${name} is not ${what}: ${await this.describe(name)}`);
    return pod;
  }

  /** Its output, once it has printed `line`. @param container of a pod that has several */
  async logUntil(name: string, line: string | RegExp, container?: string): Promise<string> {
    const look = async () => {
      const output = await this.log(name, { container });
      const printed =
        typeof line === 'string' ? output.split('\n').includes(line) : line.test(output);
      const failed = !printed && (await this.pod(name)).status?.phase === 'Failed';
      return { output, printed, failed };
    };
    const { output, printed } = await lookUntil(look, (seen) => seen.printed || seen.failed);
    if (printed) return output;
    throw new Error(
      `pod ${name} did not print ${line}, but:\n${output}\n${await this.describe(name)}`,
    );
  }

  /** Waits for its end. @returns its output */
  async result(name: string, milliseconds = PATIENCE_MS): Promise<string> {
    await this.until(
      name,
      'at its end',
      ({ status }) => status?.phase === 'Succeeded' || status?.phase === 'Failed',
      milliseconds,
    );
    return this.log(name);
  }

  /** Its output so far, or the reason why it is unknown. */
  async log(
    name: string,
    query: { readonly container?: string | undefined; readonly tailLines?: number } = {},
  ): Promise<string> {
    const asked = { path: `${this.#podsPath}/${name}/log`, query };
    try {
      return await text(await this.cluster.api.stream(asked, AbortSignal.timeout(PATIENCE_MS)));
    } catch (error) {
      return (error as Error).message;
    }
  }

  /** Waits until no pod is left. */
  async gone(): Promise<void> {
    await this.cluster.kubectl(
      '-n',
      this.namespace,
      'wait',
      'pod',
      '--all',
      '--for=delete',
      '--timeout=60s',
    );
  }

  /** Waits until all pods of a Deployment are ready. */
  async available(deployment: string, replicas: number, seconds = 90): Promise<void> {
    const condition = `jsonpath={.status.readyReplicas}=${replicas}`;
    await this.cluster.kubectl(
      '-n',
      this.namespace,
      'wait',
      `deployment/${deployment}`,
      `--for=${condition}`,
      `--timeout=${seconds}s`,
    );
  }

  async events(name: string): Promise<CoreV1Event[]> {
    const path = `/api/v1/namespaces/${this.namespace}/events`;
    const query = { fieldSelector: `involvedObject.name=${name}` };
    return (await this.cluster.api.request<{ items: CoreV1Event[] }>({ path, query })).items;
  }

  /**
   * The message of an event of that pod that matches. @throws Error with all of them after the
   * timeout
   */
  async event(name: string, message: RegExp, milliseconds = PATIENCE_MS): Promise<string> {
    const look = async () => (await this.events(name)).map((event) => event.message ?? '');
    const find = (messages: readonly string[]) => messages.find((text) => message.test(text));
    const isThere = (messages: readonly string[]) => find(messages) !== undefined;
    const messages = await lookUntil(look, isThere, { milliseconds });
    const found = find(messages);
    if (found !== undefined) return found;
    throw new Error(`pod ${name} has no event like ${message}, but:\n${messages.join('\n')}`);
  }

  /** Its description by kubectl, its output, and gpu-proxy's log lines about it. */
  async describe(name: string): Promise<string> {
    const { output } = await this.cluster.tryKubectl([
      '-n',
      this.namespace,
      'describe',
      'pod',
      name,
    ]);
    return [
      output,
      'It printed:',
      await this.log(name),
      'gpu-proxy said:',
      ...(await proxyLogOf(this.cluster, name)),
    ].join('\n');
  }

  get #podsPath(): string {
    return `/api/v1/namespaces/${this.namespace}/pods`;
  }

  /** How often the program of the pod has computed, from its log. */
  async rounds(name: string): Promise<number> {
    const log = await this.log(name, { tailLines: 20 });
    const last = [...log.matchAll(/^(\d+) rounds$/gm)].at(-1)?.[1];
    if (last === undefined && !/^working$/m.test(log))
      throw new Error(`${name} has not computed: ${log}`);
    return Number(last ?? 0);
  }
}

/** An object of pods.ts in the form for kubectl. */
export interface TenantObject {
  readonly kind: string;
  readonly [field: string]: unknown;
}

/** A pod whose containers run and never restarted. */
export function runsUndisturbed({ status }: V1Pod): boolean {
  const containers = status?.containerStatuses ?? [];
  return (
    containers.length > 0 &&
    containers.every(
      ({ restartCount, state }) => restartCount === 0 && state?.running !== undefined,
    )
  );
}
