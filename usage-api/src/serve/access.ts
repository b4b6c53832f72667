import { ApiError, type ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { UsageError } from '../errors.js';
import { GROUP, VERSION } from '../resources.js';
import type { User } from './front-proxy.js';

/** The action that a user requests. */
interface Attributes {
  readonly verb: 'get' | 'list' | 'watch';
  readonly resource: string;
  /** Undefined: all namespaces, or the resource has none. */
  readonly namespace: string | undefined;
  readonly namespaced: boolean;
  readonly name: string | undefined;
}

interface Decision {
  readonly allowed: boolean;
  readonly reason: string;
  readonly until: number;
}

/** TTL of a cached decision in milliseconds: the delay until a changed permission takes effect. */
const DECISION_TTL = 10_000;
const MAXIMUM_DECISIONS = 4096;

/** Authorizes each request with a SubjectAccessReview. */
export class Access {
  readonly #api: Pick<ApiServer, 'request'>;
  readonly #decisions = new Map<string, Decision>();

  constructor(api: Pick<ApiServer, 'request'>) {
    this.#api = api;
  }

  /** @throws UsageError FORBIDDEN, ACCESS_UNDECIDED */
  async check(user: User, attributes: Attributes): Promise<void> {
    const { allowed, reason } = await this.#decide(user, attributes);
    if (allowed) return;
    const { verb, resource, namespace, namespaced } = attributes;
    const where =
      namespaced && namespace !== undefined
        ? `in the namespace "${namespace}"`
        : 'at the cluster scope';
    throw new UsageError('FORBIDDEN', {
      resource: resource,
      user: user.name,
      verb,
      where,
      reason: reason === '' ? '' : `: ${reason}`,
    });
  }

  async #decide(user: User, attributes: Attributes): Promise<Decision> {
    const key = JSON.stringify([user, attributes]);
    const known = this.#decisions.get(key);
    if (known && known.until > Date.now()) return known;
    const decision = await this.#review(user, attributes);
    this.#cache(key, decision);
    return decision;
  }

  async #review(user: User, { verb, resource, namespace, name }: Attributes): Promise<Decision> {
    const spec = {
      user: user.name,
      groups: user.groups,
      uid: user.uid,
      extra: user.extra,
      resourceAttributes: { group: GROUP, version: VERSION, verb, resource, namespace, name },
    };
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
    try {
      const { status } = await this.#api.request<{
        status?: { allowed?: boolean; reason?: string };
      }>({
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        body,
      });
      return {
        allowed: status?.allowed === true,
        reason: status?.reason ?? '',
        until: Date.now() + DECISION_TTL,
      };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      throw new UsageError('ACCESS_UNDECIDED', { reason: error.message.replace(/\.$/, '') });
    }
  }

  #cache(key: string, decision: Decision): void {
    // Evicts the oldest entry: a Map keeps insertion order.
    this.#decisions.delete(key);
    if (this.#decisions.size >= MAXIMUM_DECISIONS)
      this.#decisions.delete(this.#decisions.keys().next().value as string);
    this.#decisions.set(key, decision);
  }
}
