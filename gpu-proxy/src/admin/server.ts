import { chmodSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  Server,
  ServerCredentials,
  type ServerErrorResponse,
  type ServerWritableStream,
  status,
} from '@grpc/grpc-js';
import type { AdminCalls, NodeUseMessage } from '@nvidia-virtual/node-state/admin/messages';
import { ERROR_TRAILER, loadAdminService } from '@nvidia-virtual/node-state/admin/service';
import { type ErrorCode, ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { checkSocketPath } from '@nvidia-virtual/service/socket';
import type { Allocation } from '../allocations/allocation.js';
import type { GpuNode } from '../node.js';
import {
  allocationMessage,
  allocationRequest,
  type Granted,
  gpuMessage,
  NOT_GRANTED,
  nodeUseMessage,
} from './convert.js';

const DEFAULT_INTERVAL_MS = 1000;
const SHORTEST_INTERVAL_MS = 100;

/** Status codes of errors; others are INTERNAL. */
const STATUS: Partial<Record<ErrorCode, status>> = {
  OPTION_VALUE: status.INVALID_ARGUMENT,
  GPU_UNKNOWN: status.NOT_FOUND,
  ALLOCATION_UNKNOWN: status.NOT_FOUND,
  MEMORY_NOT_LEFT: status.RESOURCE_EXHAUSTED,
  SHARE_NOT_LEFT: status.RESOURCE_EXHAUSTED,
  NO_GPU_FITS: status.RESOURCE_EXHAUSTED,
  USERS_FULL: status.RESOURCE_EXHAUSTED,
  GPU_MODE: status.FAILED_PRECONDITION,
  ALLOCATION_IN_USE: status.FAILED_PRECONDITION,
  WORK_STILL_RUNNING: status.FAILED_PRECONDITION,
  MEMORY_STAYS: status.FAILED_PRECONDITION,
  ARENAS_KEPT: status.RESOURCE_EXHAUSTED,
  HOST_MEMORY_NOT_LEFT: status.RESOURCE_EXHAUSTED,
  HOST_MEMORY_PROMISED: status.RESOURCE_EXHAUSTED,
  HOST_MEMORY_LOW: status.RESOURCE_EXHAUSTED,
  ARENA_NOT_MADE: status.RESOURCE_EXHAUSTED,
  MEMORY_NOT_BACK: status.RESOURCE_EXHAUSTED,
  ALLOCATION_STAYS: status.FAILED_PRECONDITION,
  PROGRAM_NOT_MOVED: status.FAILED_PRECONDITION,
  CHECKPOINT_REFUSED: status.FAILED_PRECONDITION,
  CHECKPOINT_NOT_RESTORED: status.FAILED_PRECONDITION,
  CHECKPOINT_UNKNOWN: status.NOT_FOUND,
  ALLOCATION_IN_FILE: status.FAILED_PRECONDITION,
  SUSPENDED_BY_POD: status.FAILED_PRECONDITION,
  ALLOCATION_AMBIGUOUS: status.FAILED_PRECONDITION,
};

type Handlers = {
  [Call in keyof AdminCalls]: (
    request: AdminCalls[Call][0],
  ) => AdminCalls[Call][1] | Promise<AdminCalls[Call][1]>;
};

/** The admin API of one node, on a socket that only its own user can open. */
export class AdminServer {
  readonly #server = new Server();
  readonly #socket: string;

  private constructor(socket: string) {
    this.#socket = socket;
  }

  /** @throws ProxyError SOCKET_PATH_LONG, SOCKET_NOT_MADE */
  static async start(node: GpuNode, socket: string, granted = NOT_GRANTED): Promise<AdminServer> {
    checkSocketPath(socket);
    const server = new AdminServer(socket);
    server.#server.addService(loadAdminService().service, {
      ...unaryCalls(node, granted),
      watchUse: watchUse(node, granted),
    });
    try {
      await server.#listen();
      return server;
    } catch (error) {
      throw new ProxyError('SOCKET_NOT_MADE', { path: socket, reason: systemReason(error) });
    }
  }

  /** Aborts every call. */
  close(): void {
    this.#server.forceShutdown();
    rmSync(this.#socket, { force: true });
  }

  /**
   * Restricts the socket to its owner, then atomically replaces that of an earlier gpu-proxy.
   */
  async #listen(): Promise<void> {
    const unfinished = path.join(path.dirname(this.#socket), 'new.sock');
    rmSync(unfinished, { force: true });
    await new Promise<void>((resolve, reject) =>
      this.#server.bindAsync(`unix:${unfinished}`, ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      ),
    );
    chmodSync(unfinished, 0o600);
    renameSync(unfinished, this.#socket);
  }
}

/** Undefined: the node has it. */
function keyOf(text: string): Buffer | undefined {
  return text === '' ? undefined : Buffer.from(text, 'hex');
}

function unaryCalls(node: GpuNode, granted: Granted) {
  const afterwards = async (
    allocation: Allocation,
    change: (allocation: Allocation) => Promise<void>,
  ) => {
    await change(allocation);
    return allocationMessage(node, allocation);
  };
  const handlers: Handlers = {
    listGpus: () => ({
      node: node.name,
      gpus: node.gpus.map((gpu) => gpuMessage(node, gpu, granted)),
      selection: granted.selection,
      movable: node.movable,
      arrivals: granted.arrivals(),
      placed: granted.placed(),
    }),
    createAllocation: async (request) =>
      allocationMessage(node, await node.create(allocationRequest(request))),
    listAllocations: async () => {
      await node.refresh();
      return { allocations: nodeUseMessage(node, granted).allocations };
    },
    getAllocation: async ({ id }) => {
      await node.refresh();
      return allocationMessage(node, node.find(id));
    },
    drainAllocation: ({ id }) => {
      const allocation = node.find(id);
      node.drain(allocation);
      return allocationMessage(node, allocation); // it is removed soon
    },
    suspendAllocation: ({ id }) => afterwards(node.find(id), (one) => node.suspend(one)),
    resumeAllocation: ({ id }) =>
      afterwards(node.find(id), async (one) => {
        await node.resume(one);
        if (one.suspended) throw stillSuspended(one);
      }),
    moveAllocation: ({ id, gpu }) => afterwards(node.find(id), (one) => node.move(one, gpu)),
    checkpointAllocation: ({ id, directory, key }) =>
      afterwards(node.find(id), (one) => node.checkpoint(one, directory, keyOf(key))),
    restoreAllocation: ({ directory, key }) =>
      afterwards(node.findCheckpoint(directory), (one) => node.restore(one, keyOf(key))),
    deleteAllocation: async ({ id, force }) => {
      await node.delete(node.find(id), { force });
      return {};
    },
  };
  return Object.fromEntries(
    Object.entries(handlers).map(([name, handle]) => [
      name,
      unary(handle as (request: unknown) => unknown),
    ]),
  );
}

function stillSuspended({ specification: { id, owner } }: Allocation): ProxyError {
  const { namespace = '', pod = '' } = owner ?? {};
  return new ProxyError('SUSPENDED_BY_POD', { id, namespace, pod });
}

function unary(handle: (request: unknown) => unknown): handleUnaryCall<unknown, unknown> {
  return async ({ request }, callback) => {
    try {
      callback(null, await handle(request));
    } catch (error) {
      callback(failure(error as Error));
    }
  };
}

function failure(error: Error): Partial<ServerErrorResponse> {
  if (!(error instanceof ProxyError)) return { code: status.INTERNAL, details: error.message };
  const metadata = new Metadata();
  metadata.set(ERROR_TRAILER, error.code);
  return { code: STATUS[error.code] ?? status.INTERNAL, details: error.message, metadata };
}

function watchUse(
  node: GpuNode,
  granted: Granted,
): handleServerStreamingCall<{ intervalMilliseconds: number }, NodeUseMessage> {
  return (call) => {
    const interval = Math.max(
      SHORTEST_INTERVAL_MS,
      call.request.intervalMilliseconds || DEFAULT_INTERVAL_MS,
    );
    const timer = setInterval(() => void send(call, node, granted), interval);
    call.once('close', () => clearInterval(timer));
    call.once('cancelled', () => clearInterval(timer));
    void send(call, node, granted);
  };
}

/** Skips updates while the client does not read. */
async function send(
  call: ServerWritableStream<unknown, NodeUseMessage>,
  node: GpuNode,
  granted: Granted,
): Promise<void> {
  try {
    await node.refresh();
    if (!call.cancelled && !call.writableNeedDrain) call.write(nodeUseMessage(node, granted));
  } catch (error) {
    call.emit('error', failure(error as Error));
  }
}
