import { UsageError } from '../errors.js';

/** The part of a response that a watch uses. */
interface Closing {
  readonly destroyed: boolean;
  once(event: 'close', listener: () => void): unknown;
}

interface Ending {
  end(): void;
}

/** Each watch has a connection of the API server, and half of them stay free for other requests. */
const MAXIMUM_WATCHES = 512;
const MAXIMUM_WATCHES_OF_OWNER = 16;

/** The open watches, with limits on their number in total and by owner. */
export class Watches {
  /** Each watch with its owner. */
  readonly #open = new Map<Ending, string>();

  get size(): number {
    return this.#open.size;
  }

  /**
   * Starts a watch, if the client still waits for it.
   * @throws UsageError WATCHES_FULL, and the errors of `start`
   */
  open(user: string, response: Closing, start: () => Ending): void {
    // 'close' was emitted already, so this watch would never be uncounted.
    if (response.destroyed) return;
    const owner = ownerOf(user);
    this.#check(owner);
    const watch = start();
    this.#open.set(watch, owner);
    response.once('close', () => this.#open.delete(watch));
  }

  /** Ends all watches. */
  end(): void {
    for (const watch of this.#open.keys()) watch.end();
  }

  #check(owner: string): void {
    const open = [...this.#open.values()].filter((other) => other === owner).length;
    if (open >= MAXIMUM_WATCHES_OF_OWNER)
      throw new UsageError('WATCHES_FULL', { owner, limit: MAXIMUM_WATCHES_OF_OWNER });
    if (this.size >= MAXIMUM_WATCHES)
      throw new UsageError('WATCHES_FULL', { owner: 'all users together', limit: MAXIMUM_WATCHES });
  }
}

/** A tenant can create any number of service accounts in its namespace, so they count together. */
function ownerOf(user: string): string {
  const namespace = /^system:serviceaccount:([^:]+):/.exec(user)?.[1];
  return namespace === undefined
    ? `user "${user}"`
    : `the service accounts of the namespace "${namespace}"`;
}
