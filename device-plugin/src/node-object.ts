import { createHash } from 'node:crypto';
import type { V1Node } from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kubernetes/api-server';
import type { Inventory } from '@nvidia-virtual/kubernetes/assignment';
import { INVENTORY_ANNOTATION } from '@nvidia-virtual/kubernetes/names';

const COMPONENT = 'nvidia-virtual-device-plugin';
const MERGE = 'application/merge-patch+json';
const CONFLICT = 409;
/** An event of a node is in this namespace, where `kubectl describe node` looks. */
const EVENTS = '/api/v1/namespaces/default/events';

export type EventReason = 'GpuSlotsNotOffered' | 'GpuSlotsUnhealthy';

/** A sentence that holds at this moment. */
export interface NodeTrouble {
  readonly reason: EventReason;
  readonly message: string;
}

/** The node as the API server has it. */
export class NodeObject {
  readonly #api: ApiServer;
  readonly #node: string;

  constructor(api: ApiServer, node: string) {
    this.#api = api;
    this.#node = node;
  }

  /** Writes only where something else stands. @returns whether it did. @throws ApiError */
  async annotate(inventory: Inventory): Promise<boolean> {
    const path = `/api/v1/nodes/${this.#node}`;
    const text = JSON.stringify(inventory);
    // Whatever the API server has at hand will do: at worst the same is written twice.
    const { metadata } = await this.#api.request<V1Node>({ path, query: { resourceVersion: 0 } });
    if (metadata?.annotations?.[INVENTORY_ANNOTATION] === text) return false;
    const body = { metadata: { annotations: { [INVENTORY_ANNOTATION]: text } } };
    await this.#api.request({ method: 'PATCH', path, body, contentType: MERGE });
    return true;
  }

  /** One event for one sentence, on which is counted up. @param count how often it was said, with this time. @throws ApiError */
  async warn({ reason, message }: NodeTrouble, count: number): Promise<void> {
    const now = new Date().toISOString();
    const name = `${this.#node}.${createHash('sha256').update(`${reason} ${message}`).digest('hex').slice(0, 16)}`;
    const again = { count, lastTimestamp: now };
    const about = { apiVersion: 'v1', kind: 'Node', name: this.#node, uid: this.#node };
    const body = {
      ...{ metadata: { name }, involvedObject: about, type: 'Warning', reason, message, firstTimestamp: now, ...again },
      ...{ source: { component: COMPONENT, host: this.#node }, reportingComponent: COMPONENT, reportingInstance: this.#node },
    };
    try {
      await this.#api.request({ method: 'POST', path: EVENTS, body });
    } catch (error) {
      if ((error as { status?: number }).status !== CONFLICT) throw error;
      await this.#api.request({ method: 'PATCH', path: `${EVENTS}/${name}`, body: again, contentType: MERGE });
    }
  }
}
