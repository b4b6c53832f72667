import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';

interface LeadershipOptions {
  readonly api: Pick<ApiServer, 'request'>;
  /** NAMESPACE/NAME of kube-scheduler's lease. Undefined: there is one scheduler only. */
  readonly lease: string | undefined;
  /** The host name that this process shares with its kube-scheduler. */
  readonly host: string;
}

interface Lease {
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly acquireTime?: string;
    readonly renewTime?: string;
  };
}

/** A renewal that was seen, by performance.now(). */
interface Seen {
  readonly renewTime: string | undefined;
  readonly at: number;
}

/** The duration of the lease, less the timeouts of a read and of a write. */
const FRESH_MS = 3000;
/** Time until bindings of the former leader are visible or aborted. */
const SUCCESSION_MS = 5000;
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
    const { api, lease, host } = this.#options;
    if (lease === undefined) return 'leads';
    const [namespace, name] = lease.split('/');
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`;
    const asked = performance.now();
    try {
      const { spec = {} } = await api.request<Lease>({ path, timeout: TIMEOUT_MS });
      // kube-scheduler adds _ and a UUID.
      if (!spec.holderIdentity?.startsWith(`${host}_`)) return this.#forget();
      this.#see(spec.renewTime, asked);
      const held = Date.parse(spec.renewTime ?? '') - Date.parse(spec.acquireTime ?? '');
      const isFresh = performance.now() - this.#renewedAfter < FRESH_MS + TIMEOUT_MS;
      return isFresh && held >= SUCCESSION_MS ? 'leads' : 'unknown';
    } catch {
      return 'unknown';
    }
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
