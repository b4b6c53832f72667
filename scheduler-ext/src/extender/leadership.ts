import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';

interface LeadershipOptions {
  readonly api: Pick<ApiServer, 'request'>;
  /** NAMESPACE/NAME of kube-scheduler's lease. Undefined: there is one scheduler only. */
  readonly lease: string | undefined;
  /** The host name that this process shares with its kube-scheduler. */
  readonly host: string;
}

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly acquireTime?: string;
  readonly renewTime?: string;
}

/** A renewal that was seen, by performance.now(). */
interface Seen {
  readonly renewTime: string | undefined;
  readonly at: number;
}

/** The duration of the lease, less the timeouts of a read and of a write. */
const FRESH_MS = 3000;
/** Milliseconds until bindings of the former leader are visible or aborted. */
export const SUCCESSION_MS = 5000;
const TIMEOUT_MS = 1000;

/**
 * Whether the kube-scheduler beside this process is the leader. Only its extender may assign GPUs:
 * any other one would not know the bindings in progress.
 */
export class Leadership {
  readonly #options: LeadershipOptions;
  #seen: Seen | undefined;
  /** A time before the latest renewal that was seen to happen. */
  #renewedAfter = Number.NEGATIVE_INFINITY;

  constructor(options: LeadershipOptions) {
    this.#options = options;
  }

  /**
   * Requires that it is asked repeatedly: it answers `leads` only after it has seen a renewal.
   * Times of the lease are compared with each other only, because clocks differ.
   */
  async state(): Promise<'leads' | 'follows' | 'unknown'> {
    if (this.#options.lease === undefined) return 'leads';
    const asked = performance.now();
    try {
      const spec = await this.#read(this.#options.lease);
      if (!this.#isOwn(spec)) return this.#forget();
      this.#see(spec.renewTime, asked);
      const held = Date.parse(spec.renewTime ?? '') - Date.parse(spec.acquireTime ?? '');
      const isFresh = performance.now() - this.#renewedAfter < FRESH_MS + TIMEOUT_MS;
      return isFresh && held >= SUCCESSION_MS ? 'leads' : 'unknown';
    } catch {
      return 'unknown';
    }
  }

  /**
   * The identity of the kube-scheduler beside this process, if it leads. Undefined: it does not, or
   * that is unknown.
   */
  async leader(): Promise<string | undefined> {
    const { lease } = this.#options;
    if (lease === undefined) return 'the only one';
    const spec = await this.#read(lease).catch(() => ({}) as LeaseSpec);
    return this.#isOwn(spec) ? spec.holderIdentity : undefined;
  }

  /** @throws ApiError */
  async #read(lease: string): Promise<LeaseSpec> {
    const [namespace, name] = lease.split('/');
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`;
    const { api } = this.#options;
    const { spec = {} } = await api.request<{ spec?: LeaseSpec }>({ path, timeout: TIMEOUT_MS });
    return spec;
  }

  /** kube-scheduler adds _ and a UUID, which each process has of its own. */
  #isOwn({ holderIdentity }: LeaseSpec): boolean {
    return holderIdentity?.startsWith(`${this.#options.host}_`) === true;
  }

  #see(renewTime: string | undefined, asked: number): void {
    const before = this.#seen;
    this.#seen = { renewTime, at: performance.now() };
    if (before && before.renewTime !== renewTime && asked - before.at < FRESH_MS)
      this.#renewedAfter = before.at;
  }

  #forget(): 'follows' {
    this.#seen = undefined;
    this.#renewedAfter = Number.NEGATIVE_INFINITY;
    return 'follows';
  }
}
