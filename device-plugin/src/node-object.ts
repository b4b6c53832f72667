import { createHash } from 'node:crypto';
import type { V1Node, V1NodeCondition } from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import type { Inventory } from '@nvidia-virtual/kube-common/assignment';
import {
  GPU_LOST_CONDITION,
  INVENTORY_ANNOTATION,
  PROBLEMS_ANNOTATION,
} from '@nvidia-virtual/kube-common/names';

const COMPONENT = 'nvidia-virtual-device-plugin';
const MERGE = 'application/merge-patch+json';
/** Merges conditions by their type. */
const STRATEGIC_MERGE = 'application/strategic-merge-patch+json';
const CONFLICT = 409;
/** Events of nodes are in the namespace `default`, where `kubectl describe node` searches. */
const EVENTS = '/api/v1/namespaces/default/events';

type EventReason = 'GpuSlotsNotOffered' | 'GpuSlotsUnhealthy' | 'GpuNodeUnfit';

/** A current problem of the node. */
export interface NodeTrouble {
  readonly reason: EventReason;
  readonly message: string;
}

/** The Node object in the API server. */
export class NodeObject {
  readonly #api: ApiServer;
  readonly #node: string;
  /** The last annotations that were written, as JSON. */
  #annotations: string | undefined;
  /** The last condition that was written. */
  #condition: V1NodeCondition | undefined;

  constructor(api: ApiServer, node: string) {
    this.#api = api;
    this.#node = node;
  }

  get #path(): string {
    return `/api/v1/nodes/${this.#node}`;
  }

  /** Writes the annotations if they differ. @returns whether they did. @throws ApiError */
  async annotate(inventory: Inventory, troubles: readonly NodeTrouble[]): Promise<boolean> {
    const sentences = troubles.map(({ message }) => message);
    const wanted = {
      [INVENTORY_ANNOTATION]: JSON.stringify(inventory),
      [PROBLEMS_ANNOTATION]: sentences.length === 0 ? null : JSON.stringify(sentences),
    };
    const { metadata } = await this.#readCached();
    const present = metadata?.annotations ?? {};
    const arePresent = Object.entries(wanted).every(
      ([name, text]) => (present[name] ?? null) === text,
    );
    const json = JSON.stringify(wanted);
    if (arePresent && (this.#annotations ?? json) === json) return false;
    const body = { metadata: { annotations: wanted } };
    this.#annotations = json;
    await this.#api.request({ method: 'PATCH', path: this.#path, body, contentType: MERGE });
    return true;
  }

  /**
   * Writes the condition if it differs. @param lost a sentence for each GPU that cannot be used
   * @throws ApiError
   */
  async setCondition(lost: readonly string[]): Promise<void> {
    const { status } = await this.#readCached();
    const cached = status?.conditions?.find(({ type }) => type === GPU_LOST_CONDITION);
    const former = this.#condition ?? cached;
    const current = conditionOf(lost);
    if (isSame(cached, current) && isSame(former, current)) return;
    const now = new Date();
    const condition = {
      ...{ ...current, lastHeartbeatTime: now },
      lastTransitionTime:
        former?.status === current.status ? (former.lastTransitionTime ?? now) : now,
    };
    this.#condition = condition;
    await this.#api.request({
      method: 'PATCH',
      path: `${this.#path}/status`,
      body: { status: { conditions: [condition] } },
      contentType: STRATEGIC_MERGE,
    });
  }

  /**
   * The node from the API server's cache, since each node is read once a minute. It may be older
   * than the last write: at worst the same values are written twice.
   */
  #readCached(): Promise<V1Node> {
    return this.#api.request<V1Node>({ path: this.#path, query: { resourceVersion: 0 } });
  }

  /**
   * Creates or updates the Event of a message. @param count occurrences, including this one.
   * @throws ApiError
   */
  async warn({ reason, message }: NodeTrouble, count: number): Promise<void> {
    const now = new Date().toISOString();
    const digest = createHash('sha256').update(`${reason} ${message}`).digest('hex');
    const name = `${this.#node}.${digest.slice(0, 16)}`;
    const again = { count, lastTimestamp: now };
    const about = { apiVersion: 'v1', kind: 'Node', name: this.#node, uid: this.#node };
    const body = {
      metadata: { name },
      involvedObject: about,
      type: 'Warning',
      reason,
      message,
      firstTimestamp: now,
      ...again,
      source: { component: COMPONENT, host: this.#node },
      reportingComponent: COMPONENT,
      reportingInstance: this.#node,
    };
    try {
      await this.#api.request({ method: 'POST', path: EVENTS, body });
    } catch (error) {
      if ((error as { status?: number }).status !== CONFLICT) throw error;
      await this.#api.request({
        method: 'PATCH',
        path: `${EVENTS}/${name}`,
        body: again,
        contentType: MERGE,
      });
    }
  }
}

function isSame(one: V1NodeCondition | undefined, other: V1NodeCondition): boolean {
  return one?.status === other.status && one.message === other.message;
}

function conditionOf(lost: readonly string[]): V1NodeCondition {
  const type = GPU_LOST_CONDITION;
  return lost.length > 0
    ? { type, status: 'True', reason: 'GpuLost', message: lost.join(' ') }
    : { type, status: 'False', reason: 'NoGpuLost', message: 'No GPU of this node is lost.' };
}
