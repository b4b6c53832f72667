import { createHash, randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { LedgerError } from './errors.js';
import type { NodeSnapshot } from './records.js';

/** Identifies the writer of a node's entry. */
export interface WriterIdentity {
  readonly node: string;
  /** Survives a restart of the node's gpu-proxy, and differs between machines: see `ownerOf()`. */
  readonly owner: string;
  /**
   * False where GPUs of different machines have the same UUID, as in the simulator.
   * @default true: no two nodes may have the same GPU
   */
  readonly claimGpus?: boolean;
}

/**
 * The keys, documented in README.md. They share one hash tag, because a cluster runs a script only
 * if all its keys are in one slot.
 */
export const keysIn = (prefix: string) => ({
  nodes: `${prefix}{ledger}:nodes`,
  node: (name: string) => `${prefix}{ledger}:node:${name}`,
  gpu: (uuid: string) => `${prefix}{ledger}:gpu:${uuid}`,
});

export type Keys = ReturnType<typeof keysIn>;

/**
 * Writes or renews a node's entry, its GPU claims and its place in the index, or nothing.
 *
 * KEYS: index, entry, one for each GPU. ARGV: node, owner, writer, version, TTL in ms, and the
 * snapshot if it changed. Replies with nothing, or with the reason why nothing was written; a
 * renewal finds the entry MISSING if Redis does not hold this version of it.
 *
 * - All checks precede the first write. Redis checks memory, disk and role at the first write.
 * - A claim expires after the entry, because it is renewed after it. Otherwise another node could
 *   claim a GPU of an entry that readers still see.
 * - Lua and commands of Redis 6.2, which Valkey has too.
 */
const WRITE = `
local index, entry = KEYS[1], KEYS[2]
local node, owner, writer, version, ttl, snapshot = unpack(ARGV)
local held = redis.call('HMGET', entry, 'owner', 'writer', 'version')
if held[1] and held[1] ~= owner then return {'NODE_TAKEN'} end
if held[2] and tonumber(held[2]) > tonumber(writer) then return {'NODE_SUPERSEDED'} end
for i = 3, #KEYS do
  local holder = redis.call('GET', KEYS[i])
  if holder and holder ~= node then return {'GPU_TAKEN', holder, i - 3} end
end
if snapshot then
  redis.call('HSET', entry, 'owner', owner, 'writer', writer, 'version', version, 'ttl', ttl,
    'snapshot', snapshot)
elseif held[3] ~= version or redis.call('HEXISTS', entry, 'snapshot') == 0 then
  return {'MISSING'}
end
redis.call('PEXPIRE', entry, ttl)
for i = 3, #KEYS do redis.call('SET', KEYS[i], node, 'PX', ttl) end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', index, string.format('%.0f', now + ttl), node)
redis.call('ZREMRANGEBYSCORE', index, '-inf', string.format('%.0f', now))
redis.call('PEXPIRE', index, ttl)
return {}
`;
const DIGEST = createHash('sha1').update(WRITE).digest('hex');

type Reply = readonly [] | readonly [reason: string, holder?: string, gpu?: number];

/** Keeps the entry of one node: writes it when the snapshot changed, otherwise renews its TTL. */
export class NodeEntry {
  readonly #identity: WriterIdentity;
  readonly #keys: Keys;
  readonly #ttl: number;
  /** Orders the gpu-proxies of one owner: the newest wins. */
  readonly #writer = Date.now();
  /**
   * The last confirmed write. The version is random, so that a renewal detects lost or old data,
   * and commands that Redis executed late.
   */
  #written: { readonly snapshot: string; readonly version: string } | undefined;

  /** @param ttl milliseconds */
  constructor(identity: WriterIdentity, keys: Keys, ttl: number) {
    this.#identity = identity;
    this.#keys = keys;
    this.#ttl = ttl;
  }

  /** Returns why the node was refused. Undefined: it is in the ledger. */
  async put(client: Redis, snapshot: NodeSnapshot): Promise<LedgerError | undefined> {
    const gpus = this.#identity.claimGpus === false ? [] : snapshot.gpus.map(({ uuid }) => uuid);
    const json = JSON.stringify(snapshot);
    if (json === this.#written?.snapshot) {
      const reply = await this.#run(client, gpus, [this.#written.version, this.#ttl]);
      if (reply[0] !== 'MISSING') return this.#refusal(reply, gpus);
    }
    const version = randomUUID();
    this.#written = undefined;
    const reply = await this.#run(client, gpus, [version, this.#ttl, json]);
    if (reply.length === 0) this.#written = { snapshot: json, version };
    return this.#refusal(reply, gpus);
  }

  async #run(client: Redis, gpus: readonly string[], args: (string | number)[]): Promise<Reply> {
    const { node, owner } = this.#identity;
    const keys = [this.#keys.nodes, this.#keys.node(node), ...gpus.map(this.#keys.gpu)];
    const rest = [keys.length, ...keys, node, owner, this.#writer, ...args] as const;
    try {
      return (await client.evalsha(DIGEST, ...rest)) as Reply;
    } catch (error) {
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
      return (await client.eval(WRITE, ...rest)) as Reply;
    }
  }

  #refusal([reason, other, gpu]: Reply, gpus: readonly string[]): LedgerError | undefined {
    const { node } = this.#identity;
    const end = `has been silent for ${this.#ttl / 1000} s`;
    if (reason === 'NODE_TAKEN') return new LedgerError('NODE_TAKEN', { node, end });
    if (reason === 'NODE_SUPERSEDED') return new LedgerError('NODE_SUPERSEDED', { node, end });
    if (reason === 'GPU_TAKEN')
      return new LedgerError('GPU_TAKEN', {
        ...{ node, end, other: String(other) },
        gpu: String(gpus[Number(gpu)]),
      });
    return undefined;
  }
}
