import type { Logger } from 'pino';
import type { Allocation } from './allocation.js';
import type { Backend } from './backend.js';
import type { Installation } from './installation.js';
import { type AllocationRequest, GpuNode, type NodeOptions } from './node.js';
import type { Session } from './session.js';
import { StateDirectory } from './state-directory.js';

export interface EmbeddedOptions extends AllocationRequest {
  readonly installation: Installation;
  readonly backend: Backend;
  readonly logger: Logger;
  readonly settings?: NodeOptions['settings'];
}

/**
 * A node with one allocation, which nobody else knows: it grants what is asked for without taking an inventory (which would load the driver
 * once more), and goes with its last session.
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

  /** @throws ProxyError when its socket cannot be made; nothing is left behind then. */
  static async start({ installation, backend, logger, settings, ...request }: EmbeddedOptions): Promise<EmbeddedNode> {
    const arbitrated = request.policy === 'fixed' && (request.share ?? 100) < 100;
    const state = StateDirectory.makeTemporary();
    const node = await GpuNode.start({ ...{ installation, backend, logger, settings, state }, gpus: [], arbitrated });
    try {
      return new EmbeddedNode(node, await node.create(request));
    } catch (error) {
      await node.close();
      throw error;
    }
  }

  /** Waits for the sessions, then removes all that it made. */
  close(): Promise<void> {
    return this.#node.close();
  }
}
