import type { Redis } from 'ioredis';
import { type Content, type Difference, difference, encode, isEmpty, NOTHING, sizes, TABLES } from './content.js';
import { LedgerError } from './errors.js';
import type { Keyspace } from './keyspace.js';
import type { WriterIdentity } from './ledger.js';
import type { NodeSnapshot } from './records.js';
import { BEGIN, CLAIM, RELEASE, WITHDRAW, WRITE } from './scripts.js';

/** Milliseconds. The tables outlive the lease, so that whoever finds the lease finds them too. */
const TABLES_OUTLIVE = 15_000;
/** They are renewed a moment before the lease, and must not end before it: or another node could take a GPU that is still in the ledger. */
const CLAIMS_OUTLIVE = 5000;
const INSTANCE_REMEMBERED = 30 * 24 * 3600 * 1000;
/** In place of a revision: whatever is there is replaced. */
const ANEW = -1;

/** What Redis is known to hold; undefined after anything else than `written`. */
interface Written {
  readonly content: Content;
  readonly revision: number;
}

/**
 * Brings one node's keys to what it should hold, by differences. The state is what was written last; each script compares its revision
 * with the one in Redis, so a FLUSHALL, an expired lease or a command that came late is found out, and everything is written anew.
 */
export class NodeWriter {
  readonly #identity: WriterIdentity;
  readonly #keys: Keyspace;
  readonly #lease: number;
  #instance: string | undefined;
  /** Counts attempts, not successes: one that failed for us may still be carried out. */
  #attempts = 0;
  #written: Written | undefined;
  /** Most renewals find the same snapshot. */
  #encoded: { readonly snapshot: NodeSnapshot; readonly content: Content } | undefined;

  /** `lease` in milliseconds. */
  constructor(identity: WriterIdentity, keys: Keyspace, lease: number) {
    this.#identity = identity;
    this.#keys = keys;
    this.#lease = lease;
  }

  /** Writes what differs and renews the lease. Answers what keeps this node out of the ledger, undefined when it is in. */
  async bring(client: Redis, wanted: NodeSnapshot): Promise<LedgerError | undefined> {
    const refusal = await this.#claim(client, wanted);
    if (refusal) return refusal;
    const content = this.#encode(wanted);
    const answer = await this.#write(client, content, this.#written);
    const last = answer === 'anew' ? await this.#write(client, content, undefined) : answer;
    return last === 'written' ? undefined : this.#refused(last);
  }

  /** Takes out what this writer wrote. */
  async withdraw(client: Redis, snapshot: NodeSnapshot | undefined): Promise<void> {
    const { node, owner } = this.#identity;
    if (this.#instance === undefined) return;
    if ((await WITHDRAW.run(client, this.#keys.ofNode(node), [owner, this.#instance])) !== 1) return;
    await RELEASE.run(client, [this.#keys.nodes, ...this.#gpuKeys(snapshot)], [node, owner]);
  }

  async #claim(client: Redis, wanted: NodeSnapshot): Promise<LedgerError | undefined> {
    const { node, owner } = this.#identity;
    const answer = await CLAIM.run(client, [this.#keys.nodes, ...this.#gpuKeys(wanted)], [node, owner, this.#lease + CLAIMS_OUTLIVE]);
    const [index, holder] = answer as [number, string] | [undefined, undefined];
    if (index === undefined) return undefined;
    // The name stands before the owner, and has no space.
    const other = holder.split(' ', 1)[0] as string;
    if (other === node) return this.#refused('taken');
    return new LedgerError('GPU_TAKEN', {
      node,
      other,
      gpu: wanted.gpus[index - 1]?.uuid as string,
      end: silent(this.#lease + CLAIMS_OUTLIVE),
    });
  }

  async #write(client: Redis, content: Content, from: Written | undefined): Promise<string> {
    const { node, owner } = this.#identity;
    this.#instance ??= String(await BEGIN.run(client, [this.#keys.instance(node)], [INSTANCE_REMEMBERED]));
    const changes = difference(from?.content ?? NOTHING, content);
    const revision = from && isEmpty(changes) ? from.revision : ++this.#attempts;
    const header = [owner, this.#instance, from?.revision ?? ANEW, revision, this.#lease, this.#lease + TABLES_OUTLIVE, sizes(content)];
    this.#written = undefined;
    const answer = String(await WRITE.run(client, this.#keys.ofNode(node), header.concat(flat(changes))));
    if (answer === 'written') this.#written = { content, revision };
    return answer;
  }

  #encode(snapshot: NodeSnapshot): Content {
    if (this.#encoded?.snapshot !== snapshot) this.#encoded = { snapshot, content: encode(snapshot) };
    return this.#encoded.content;
  }

  #refused(answer: string): LedgerError {
    const { node } = this.#identity;
    if (answer === 'superseded') return new LedgerError('NODE_SUPERSEDED', { node });
    return new LedgerError('NODE_TAKEN', { node, end: silent(this.#lease) });
  }

  #gpuKeys(snapshot: NodeSnapshot | undefined): string[] {
    if (this.#identity.claimGpus === false || !snapshot) return [];
    return snapshot.gpus.map((gpu) => this.#keys.gpu(gpu.uuid));
  }
}

function silent(milliseconds: number): string {
  return `has been silent for ${milliseconds / 1000} s`;
}

/** As the script reads it: for each table how many are set, them, how many are removed, them. */
function flat(changes: Difference): (string | number)[] {
  return TABLES.flatMap((table) => {
    const { set, remove } = changes[table];
    return [set.length, ...set.flat(), remove.length, ...remove];
  });
}
