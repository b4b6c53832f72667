import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync } from 'node:fs';
import path from 'node:path';
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServerWritableStream,
  status,
} from '@grpc/grpc-js';
import { systemReason } from '@nvidia-virtual/service/errors';
import { checkSocketPath } from '@nvidia-virtual/service/socket';
import { PluginError } from './errors.js';
import {
  type AllocateRequest,
  type AllocateResponse,
  type DevicePluginOptions,
  loadDevicePluginProtocol,
} from './protocol.js';
import type { SlotList } from './slot-list.js';

/**
 * Both are disabled, since each costs a call for every container: slots have no topology, and
 * nothing must be done before a container starts.
 */
export const OPTIONS: DevicePluginOptions = {
  preStartRequired: false,
  getPreferredAllocationAvailable: false,
};

/**
 * Names of our sockets. They are unique, because closing a socket removes the file of its name.
 */
export const ENDPOINT_NAME = /^nvidia-virtual-[0-9a-f]{8}\.sock$/;

export interface EndpointOptions {
  /** Directory of the kubelet's socket. */
  readonly directory: string;
  readonly slots: SlotList;
  /** @throws PluginError; the pod shows its message */
  allocate(request: AllocateRequest): AllocateResponse;
  /** Called when the kubelet starts or stops watching the list. */
  watched(now: boolean): void;
}

type List = ServerWritableStream<unknown, { devices: SlotList['devices'] }>;

/** A socket that serves the device plugin API to the kubelet. */
export class Endpoint {
  readonly path: string;
  readonly #options: EndpointOptions;
  readonly #server = new Server();
  readonly #lists = new Set<List>();
  readonly #tell = () => {
    for (const list of this.#lists) this.#write(list);
  };

  private constructor(options: EndpointOptions) {
    this.#options = options;
    this.path = path.join(
      options.directory,
      `nvidia-virtual-${randomBytes(4).toString('hex')}.sock`,
    );
    this.#server.addService(loadDevicePluginProtocol().DevicePlugin.service, this.#handlers());
    options.slots.on('changed', this.#tell);
  }

  /** @throws PluginError ENDPOINT_NOT_SERVED */
  static async open(options: EndpointOptions): Promise<Endpoint> {
    const endpoint = new Endpoint(options);
    try {
      await endpoint.#listen();
      return endpoint;
    } catch (error) {
      endpoint.close();
      throw new PluginError('ENDPOINT_NOT_SERVED', {
        path: endpoint.path,
        reason: systemReason(error),
      });
    }
  }

  get name(): string {
    return path.basename(this.path);
  }

  /** Whether the socket exists. The kubelet removes it at its start. */
  get there(): boolean {
    return existsSync(this.path);
  }

  get watched(): boolean {
    return this.#lists.size > 0;
  }

  /**
   * Ends the stream. The kubelet assigns no slots until the next registration.
   */
  close(): void {
    this.#options.slots.off('changed', this.#tell);
    this.#lists.clear();
    this.#server.forceShutdown();
  }

  #handlers() {
    const listAndWatch: handleServerStreamingCall<unknown, unknown> = (list) =>
      this.#watch(list as List);
    return {
      getDevicePluginOptions: unary(() => OPTIONS),
      allocate: unary((request) => this.#options.allocate(request as AllocateRequest)),
      getPreferredAllocation: unary(() => ({})),
      preStartContainer: unary(() => ({})),
      listAndWatch,
    };
  }

  async #listen(): Promise<void> {
    checkSocketPath(this.path);
    await new Promise<void>((resolve, reject) =>
      this.#server.bindAsync(`unix:${this.path}`, ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      ),
    );
    chmodSync(this.path, 0o600);
  }

  #watch(list: List): void {
    this.#lists.add(list);
    this.#options.watched(true);
    const end = () => {
      if (this.#lists.delete(list) && !this.watched) this.#options.watched(false);
    };
    list.once('close', end);
    list.once('cancelled', end);
    list.once('error', end);
    this.#write(list);
  }

  #write(list: List): void {
    list.write({ devices: this.#options.slots.devices });
  }
}

function unary(handle: (request: unknown) => unknown): handleUnaryCall<unknown, unknown> {
  return ({ request }, callback) => {
    try {
      callback(null, handle(request));
    } catch (error) {
      callback({ code: status.FAILED_PRECONDITION, details: (error as Error).message });
    }
  };
}
