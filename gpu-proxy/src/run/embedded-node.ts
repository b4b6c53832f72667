import type { Logger } from 'pino';
import type { Allocation } from '../allocations/allocation.js';
import { type Backend, backendOf } from '../gpus/backend.js';
import type { Installation } from '../host/installation.js';
import { StateDirectory } from '../host/state-directory.js';
import type { NodeOptions } from '../node.js';
import { GpuNode } from '../node.js';
import type { AllocationRequest } from '../node-types.js';
import type { Session } from '../sessions/session.js';

interface EmbeddedOptions extends AllocationRequest {
  readonly installation: Installation;
  readonly backend: Backend;
  readonly logger: Logger;
  readonly settings?: NodeOptions['settings'];
}

/**
 * A private node with one allocation. It grants every request without an inventory, which would
 * load the driver once more, and ends with its last session.
 */
export class EmbeddedNode {
  readonly allocation: Allocation;
  /** Every session that ended, oldest first. */
  readonly ended: Session[] = [];
  readonly #node: GpuNode;

  private constructor(node: GpuNode, allocation: Allocation) {
    this.#node = node;
    this.allocation = allocation;
    node.on('sessionEnded', ({ session }) => this.ended.push(session));
  }

  /** @throws ProxyError if its socket cannot be created; then nothing is left behind */
  static async start({
    installation,
    backend,
    logger,
    settings,
    ...request
  }: EmbeddedOptions): Promise<EmbeddedNode> {
    const arbitrated = request.policy === 'fixed' && (request.share ?? 100) < 100;
    const state = StateDirectory.makeTemporary();
    const node = await GpuNode.start({
      ...{ installation, backend: backendOf(backend, state), logger, settings, state },
      gpus: [],
      arbitrated,
    });
    try {
      return new EmbeddedNode(node, await node.create(request));
    } catch (error) {
      await node.close();
      throw error;
    }
  }

  /** Waits for the sessions, then removes all files. */
  close(): Promise<void> {
    return this.#node.close();
  }
}
