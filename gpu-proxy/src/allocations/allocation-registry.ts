import { existsSync } from 'node:fs';
import path from 'node:path';
import type { AllocationSpecification, Suspender } from '@nvidia-virtual/ledger';
import { SPECIFICATION } from '@nvidia-virtual/node-state/paths';
import { readReserved } from '@nvidia-virtual/node-state/specification';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { plural } from '@nvidia-virtual/service/plural';
import type { AllocationRequest } from '../node-types.js';
import { Allocation } from './allocation.js';
import type { AllocationHost } from './allocation-host.js';
import type { ClientSocket } from './client-socket.js';

interface RegistryOptions {
  readonly host: AllocationHost;
  /** Contains a directory for each allocation. */
  readonly directory: string;
  /** An allocation was created. Not called for one that is taken over. */
  created(allocation: AllocationSpecification): void;
  /** An allocation was added, changed or removed. */
  changed(): void;
  removed(id: string): void;
  /** The memory of an allocation left the GPU, or came back. */
  moved(how: 'leaving' | 'entering', seconds: number): void;
  /** A user suspended an allocation, or no user suspends it any more. */
  suspensionChanged(allocation: AllocationSpecification): void;
  /** An allocation became a grant again. */
  unbound(id: string, socket: ClientSocket): void;
}

/**
 * The allocations of a node, from creation or takeover to removal. An allocation is removed when it
 * is deleted, when its holder ended, or when it was drained and its last session ended.
 */
export class AllocationRegistry {
  readonly #options: RegistryOptions;
  readonly #allocations = new Map<string, Allocation>();
  /**
   * Allocations that cannot be served, by the paths of their specifications. They still count in
   * admission.
   */
  readonly #leftAlone = new Map<string, AllocationSpecification>();
  readonly #unwatchHolders = new Map<string, () => void>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  get all(): Allocation[] {
    return [...this.#allocations.values()];
  }

  get(id: string): Allocation | undefined {
    return this.#allocations.get(id);
  }

  /**
   * Specifications that count in admission: allocations, and those that cannot be served as long as
   * their files exist.
   */
  get promised(): AllocationSpecification[] {
    const leftAlone = [...this.#leftAlone]
      .filter(([file]) => existsSync(file))
      .map(([, specification]) => specification);
    return [...this.all.map(({ specification }) => specification), ...leftAlone];
  }

  /** UUIDs of GPUs that sessions use, or allocations that cannot be served. */
  get gpusInUse(): Set<string> {
    const used = this.all
      .filter(({ sessionCount }) => sessionCount > 0)
      .map(({ specification }) => specification);
    return new Set([...used, ...this.#leftAlone.values()].flatMap(({ gpus }) => gpus));
  }

  /** @throws ProxyError ALLOCATION_UNKNOWN, ALLOCATION_AMBIGUOUS */
  find(idOrName: string): Allocation {
    const byId = this.#allocations.get(idOrName);
    if (byId) return byId;
    const [found, ...others] = this.all.filter(
      ({ specification }) => specification.name === idOrName,
    );
    if (!found) throw new ProxyError('ALLOCATION_UNKNOWN', { name: idOrName });
    if (others.length === 0) return found;
    const ids = [found, ...others].map(({ id }) => id).join(', ');
    throw new ProxyError('ALLOCATION_AMBIGUOUS', {
      name: idOrName,
      allocations: plural(others.length + 1, 'allocation'),
      ids,
    });
  }

  /**
   * Creates an allocation for a request, and opens it to its clients. The allocation counts in
   * admission from the call on. On failure it is removed. @throws ProxyError, or a system error
   */
  async create(
    specification: AllocationSpecification,
    { grant, holder, socketPath }: AllocationRequest,
  ): Promise<Allocation> {
    const { directory, host } = this.#options;
    const allocation = grant
      ? Allocation.bind(path.join(directory, grant.id), specification, host, grant.socket)
      : Allocation.create(directory, specification, host, holder);
    this.#allocations.set(allocation.id, allocation);
    try {
      allocation.giveDirectories();
      // The socket of a grant listens already.
      if (!grant) await allocation.listen(socketPath);
    } catch (error) {
      this.#remove(allocation);
      throw error;
    }
    host.logger.info(
      { ...named(allocation), ...allocation.specification, id: undefined },
      'allocation made',
    );
    this.#options.created(allocation.specification);
    this.#watchHolder(allocation);
    this.#options.changed();
    return allocation;
  }

  /**
   * Takes over an allocation of an earlier gpu-proxy. Logs and skips one that cannot be read:
   * another version may be able to.
   */
  async takeOver(id: string): Promise<void> {
    const { directory, host } = this.#options;
    try {
      const allocation = Allocation.load(path.join(directory, id), host);
      this.#allocations.set(id, allocation);
      await allocation.listen();
      host.logger.info(
        { ...named(allocation), sessions: allocation.sessionCount },
        'allocation found again',
      );
      if (allocation.specification.draining) this.#removeWhenDrained(allocation);
      else this.#watchHolder(allocation);
    } catch (error) {
      this.#leaveAlone(id, error as Error);
    }
  }

  /** Refuses new sessions. The allocation is removed after its last session. */
  drain(allocation: Allocation): void {
    allocation.drain();
    this.#options.host.logger.info(
      { ...named(allocation), sessions: allocation.sessionCount },
      'allocation is drained',
    );
    this.#removeWhenDrained(allocation);
    this.#options.changed();
  }

  /** Takes GPU time and memory from its sessions. @throws ProxyError */
  suspend(allocation: Allocation, by: Suspender): Promise<void> {
    return this.#move(allocation, 'leaving', by, () => allocation.suspend(by));
  }

  /**
   * Gives both back to its sessions, if nobody else suspends it.
   * @throws ProxyError MEMORY_NOT_BACK; it stays suspended
   */
  resume(allocation: Allocation, by: Suspender): Promise<void> {
    return this.#move(allocation, 'entering', by, () => allocation.unsuspend(by));
  }

  /** Writes its sessions to files; see Checkpoint. @throws ProxyError */
  async checkpoint(
    allocation: Allocation,
    directory: string,
    key: Buffer | undefined,
  ): Promise<void> {
    const begun = performance.now();
    await this.#change(allocation.checkpoint(directory, key));
    const seconds = (performance.now() - begun) / 1000;
    this.#options.host.logger.info(
      { ...named(allocation), directory, sessions: allocation.sessionCount, seconds },
      'allocation is in a file',
    );
  }

  /** Makes its sessions again from their files; see Checkpoint. @throws ProxyError */
  async restore(allocation: Allocation, key: Buffer | undefined): Promise<void> {
    const begun = performance.now();
    await this.#change(allocation.restore(key));
    const seconds = (performance.now() - begun) / 1000;
    this.#options.host.logger.info(
      { ...named(allocation), sessions: allocation.sessionCount, seconds },
      'allocation is back from its file',
    );
  }

  #change(changing: Promise<void>): Promise<void> {
    this.#options.changed();
    return changing.finally(() => this.#options.changed());
  }

  /** Moves it to another GPU, which has room for it. @throws ProxyError */
  async move(allocation: Allocation, gpu: string): Promise<void> {
    const begun = performance.now();
    const [from] = allocation.specification.gpus;
    const moving = allocation.move(gpu);
    this.#options.changed();
    await moving.finally(() => this.#options.changed());
    const seconds = (performance.now() - begun) / 1000;
    this.#options.host.logger.info(
      { ...named(allocation), from, to: gpu, sessions: allocation.sessionCount, seconds },
      'allocation has moved to another GPU',
    );
  }

  /**
   * The policy of its GPU suspends it, if it does not yet, and memory of so many bytes leaves.
   * @returns milliseconds in which memory moved. @throws ProxyError
   */
  async evict(allocation: Allocation, bytes: number): Promise<number> {
    if (allocation.evicted) return allocation.evict(bytes);
    let duration = 0;
    await this.#move(allocation, 'leaving', 'policy', async () => {
      duration = await allocation.evict(bytes);
      return true;
    });
    return duration;
  }

  /**
   * Memory of so many bytes comes back; all: the policy no longer suspends it.
   * @returns milliseconds in which memory moved. @throws ProxyError
   */
  async admit(allocation: Allocation, bytes: number): Promise<number> {
    if (bytes < Number.POSITIVE_INFINITY) return allocation.enter(bytes);
    const begun = performance.now();
    await this.resume(allocation, 'policy');
    return performance.now() - begun;
  }

  /** @throws ProxyError ALLOCATION_IN_USE if it has sessions, unless `force` kills them */
  async delete(allocation: Allocation, { force }: { force: boolean }): Promise<void> {
    const sessions = allocation.sessionCount;
    if (sessions > 0 && !force)
      throw new ProxyError('ALLOCATION_IN_USE', {
        id: allocation.id,
        sessions: plural(sessions, 'session'),
      });
    await endSessions(allocation);
    this.#remove(allocation);
  }

  /** Kills its sessions and removes it together with its grant, because its pod is gone. */
  async release(allocation: Allocation): Promise<void> {
    await endSessions(allocation);
    this.#takeAway(allocation, () => allocation.remove());
  }

  /** Detaches from all. Their sessions continue. */
  leave(): void {
    for (const allocation of this.all) allocation.leave();
    for (const unwatch of this.#unwatchHolders.values()) unwatch();
    this.#allocations.clear();
  }

  /** Waits for the sessions, then removes every allocation. */
  async close(): Promise<void> {
    for (const allocation of this.all) allocation.stopAccepting();
    await Promise.all(this.all.map((allocation) => allocation.whenIdle()));
    for (const allocation of this.all) this.#remove(allocation);
  }

  /** @param move returns whether the state has changed */
  async #move(
    allocation: Allocation,
    how: 'leaving' | 'entering',
    by: Suspender,
    move: () => Promise<boolean>,
  ): Promise<void> {
    const begun = performance.now();
    const { suspended } = allocation;
    const moving = move();
    this.#options.changed();
    const { outBytes: before } = allocation;
    const moved = await moving.finally(() => this.#options.changed());
    if (allocation.suspended !== suspended)
      this.#options.suspensionChanged(allocation.specification);
    if (!moved) return;
    const seconds = (performance.now() - begun) / 1000;
    const { sessionCount: sessions, outBytes } = allocation;
    this.#options.host.logger.info(
      { ...named(allocation), sessions, bytes: Math.max(before, outBytes), seconds },
      messageOf(how, by),
    );
    this.#options.moved(how, seconds);
  }

  #leaveAlone(id: string, error: Error): void {
    const file = path.join(this.#options.directory, id, SPECIFICATION);
    const specification = this.#allocations.get(id)?.specification ?? readReserved(file);
    if (specification && !this.#allocations.has(id)) this.#leftAlone.set(file, specification);
    const reason = error instanceof ProxyError ? error.message : `${systemReason(error)}.`;
    const promised = specification
      ? 'its memory stays reserved until its directory is removed'
      : 'its memory is not counted, because its quota cannot be read';
    this.#options.host.logger.error(
      { allocation: id },
      new ProxyError('ALLOCATION_NOT_SERVED', { id, reason, promised }).message,
    );
  }

  #watchHolder(allocation: Allocation): void {
    const { holder } = allocation;
    if (!holder) return;
    const unwatch = this.#options.host.addon.watchProcess(
      { pid: holder.pid, startTime: holder.startTime ?? '' },
      () => this.#noteHolderGone(allocation),
    );
    this.#unwatchHolders.set(allocation.id, unwatch);
  }

  #noteHolderGone(allocation: Allocation): void {
    try {
      this.drain(allocation);
    } catch (error) {
      const reason = systemReason(error);
      this.#options.host.logger.error(
        named(allocation),
        `The holder of the allocation ended, but the drain could not be saved: ${reason}.`,
      );
      this.#removeWhenDrained(allocation);
    }
  }

  #removeWhenDrained(allocation: Allocation): void {
    allocation
      .whenIdle()
      .then(() => this.#remove(allocation))
      .catch((error) =>
        this.#options.host.logger.error(
          named(allocation),
          `The directory of the drained allocation could not be removed: ${systemReason(error)}.`,
        ),
      );
  }

  /**
   * Removes an allocation. A granted one becomes a grant again, because its container may restart
   * and needs the directory.
   */
  #remove(allocation: Allocation): void {
    this.#takeAway(allocation, () => {
      if (allocation.granted) this.#options.unbound(allocation.id, allocation.unbind());
      else allocation.remove();
    });
  }

  /** Idempotent. */
  #takeAway(allocation: Allocation, removeFiles: () => void): void {
    const { id } = allocation;
    if (!this.#allocations.delete(id)) return;
    this.#unwatchHolders.get(id)?.();
    this.#unwatchHolders.delete(id);
    this.#options.removed(id);
    removeFiles();
    this.#options.host.logger.info(
      { ...named(allocation), peakMemory: allocation.peakMemory },
      'allocation removed',
    );
    this.#options.changed();
  }
}

function messageOf(how: 'leaving' | 'entering', by: Suspender): string {
  if (by === 'policy')
    return how === 'leaving'
      ? 'allocation has left the GPU for others'
      : 'allocation is on the GPU again';
  return how === 'leaving' ? 'allocation is suspended' : 'allocation is resumed';
}

async function endSessions(allocation: Allocation): Promise<void> {
  if (!allocation.specification.draining) allocation.drain();
  allocation.kill();
  await allocation.whenIdle();
}

function named({ specification: { id, name } }: Allocation) {
  return { allocation: id, name };
}
