import {
  type CallOptions,
  type Client,
  credentials,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { type ErrorCode, ProxyError } from '@nvidia-virtual/service/errors';
import { checkSocketPath, whyNotServed } from '@nvidia-virtual/service/socket';
import { adminSocketIn } from '../paths.js';
import type { AdminCalls, NodeUseMessage } from './messages.js';
import { ERROR_TRAILER, loadAdminService } from './service.js';

/** Calls take milliseconds, except a deletion, which waits for the last worker. */
const CALL_TIMEOUT_MS = 60_000;
/** Calls that move the GPU memory of an allocation. */
const MOVE_TIMEOUT_MS = 600_000;
const MOVES: ReadonlySet<keyof AdminCalls> = new Set([
  'suspendAllocation',
  'resumeAllocation',
  'checkpointAllocation',
  'restoreAllocation',
]);

type Callback = (error: ServiceError | null, response: unknown) => void;
type Calls = Record<
  keyof AdminCalls,
  (request: unknown, options: CallOptions, callback: Callback) => void
> & {
  watchUse(request: unknown): AsyncIterable<NodeUseMessage> & { cancel(): void };
};

/** Client of the node that serves a state directory. */
export class AdminClient {
  readonly #state: string;
  readonly #client: Client & Calls;

  private constructor(state: string) {
    this.#state = state;
    const Service = loadAdminService();
    this.#client = new Service(
      `unix:${adminSocketIn(state)}`,
      credentials.createInsecure(),
    ) as unknown as Client & Calls;
  }

  /** @throws ProxyError NODE_NOT_SERVED */
  static async connect(state: string): Promise<AdminClient> {
    const socket = adminSocketIn(state);
    checkSocketPath(socket);
    const reason = await whyNotServed(socket);
    if (reason !== undefined) throw new ProxyError('NODE_NOT_SERVED', { state, reason });
    return new AdminClient(state);
  }

  /** @throws ProxyError with the node's message */
  call<Name extends keyof AdminCalls>(
    name: Name,
    request: AdminCalls[Name][0],
  ): Promise<AdminCalls[Name][1]> {
    const deadline = Date.now() + (MOVES.has(name) ? MOVE_TIMEOUT_MS : CALL_TIMEOUT_MS);
    return new Promise((resolve, reject) =>
      this.#client[name](request, { deadline }, (error, response) => {
        if (error) reject(this.#translate(error));
        else resolve(response as AdminCalls[Name][1]);
      }),
    );
  }

  /**
   * Yields the node's usage now and after each interval, until the caller stops iterating.
   * @throws ProxyError if the connection to the node breaks
   */
  async *watchUse(intervalMilliseconds: number): AsyncGenerator<NodeUseMessage> {
    const stream = this.#client.watchUse({ intervalMilliseconds });
    try {
      yield* stream;
    } catch (error) {
      throw this.#translate(error as ServiceError);
    } finally {
      stream.cancel();
    }
  }

  close(): void {
    this.#client.close();
  }

  #translate(error: ServiceError): ProxyError {
    const [code] = error.metadata?.get(ERROR_TRAILER) ?? [];
    if (ProxyError.codes.includes(code as ErrorCode))
      return new ProxyError(code as ErrorCode, {}, error.details);
    const reason = error.code === status.UNAVAILABLE ? 'the connection broke' : error.details;
    return new ProxyError('NODE_FAILED', { state: this.#state, reason });
  }
}
