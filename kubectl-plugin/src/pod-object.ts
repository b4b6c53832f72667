import type { V1Pod } from '@kubernetes/client-node';
import { printable } from '@nvidia-virtual/service/printable';
import type { Kubectl } from './kubectl.js';

interface PodObjectOptions {
  readonly kubectl: Kubectl;
  readonly namespace: string;
  readonly name: string;
}

/** An Event, as far as it is read. */
interface PodEvent {
  readonly reason?: string;
  readonly message?: string;
  readonly lastTimestamp?: string;
}

/** A pod, by the rights of the user. */
export class PodObject {
  readonly #options: PodObjectOptions;

  constructor(options: PodObjectOptions) {
    this.#options = options;
  }

  /** @throws KubectlError, PluginError */
  async read(): Promise<Pick<V1Pod, 'metadata'>> {
    const { kubectl, name } = this.#options;
    const path = `${this.#namespacePath}/pods/${encodeURIComponent(name)}`;
    return JSON.parse(await kubectl.get(path)) as Pick<V1Pod, 'metadata'>;
  }

  /**
   * @param value undefined: the annotation is removed
   * @param uid protects a later pod of the same name. @throws KubectlError, PluginError
   */
  async annotate(uid: string, annotation: string, value: string | undefined): Promise<void> {
    const { kubectl, namespace, name } = this.#options;
    const patch = { metadata: { uid, annotations: { [annotation]: value ?? null } } };
    await kubectl.patchPod(namespace, name, patch);
  }

  /**
   * Message of the latest event with this reason. Tenants can write events, so its control
   * characters are replaced. Undefined: there is none, or it may not be read.
   */
  async latestEvent(uid: string, reason: string): Promise<string | undefined> {
    const { kubectl } = this.#options;
    const selector = encodeURIComponent(`involvedObject.uid=${uid},reason=${reason}`);
    const path = `${this.#namespacePath}/events?fieldSelector=${selector}`;
    try {
      const { items } = JSON.parse(await kubectl.get(path)) as {
        items: readonly PodEvent[];
      };
      const time = ({ lastTimestamp = '' }: PodEvent) => Date.parse(lastTimestamp) || 0;
      const [latest] = [...items].sort((one, other) => time(other) - time(one));
      return latest?.message && printable(latest.message);
    } catch {
      return undefined;
    }
  }

  get #namespacePath(): string {
    return `/api/v1/namespaces/${encodeURIComponent(this.#options.namespace)}`;
  }
}
