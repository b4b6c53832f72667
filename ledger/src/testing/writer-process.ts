import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { NodeSnapshot } from '../records.js';
import { RedisLedger } from '../redis-ledger.js';

/**
 * A node in a process of its own, for tests that kill it: publishes what it finds in directories,
 * twenty times a second. Arguments: Redis' socket, name of the node, its directory, TTL in ms.
 */
const [socket, node, directory, ttl] = process.argv.slice(2) as [string, string, string, string];

const ledger = new RedisLedger({
  redis: { url: `unix://${socket}` },
  writer: { node, owner: directory },
  ttl: Number(ttl),
});
const publish = () => ledger.publish(readNode(node, directory));
publish();
setInterval(publish, 50);

/**
 * The truth: a file for each thing, in its own directory; what is half written is not there yet.
 */
function readNode(name: string, root: string): NodeSnapshot {
  const allocations = readdirSync(path.join(root, 'allocations')).map((id) => {
    const place = path.join(root, 'allocations', id);
    const sessions = readdirSync(path.join(place, 'sessions')).map((number) =>
      readJson(path.join(place, 'sessions', number)),
    );
    return { ...(readJson(path.join(place, 'allocation.json')) as object), sessions };
  });
  return {
    node: name,
    gpus: readJson(path.join(root, 'gpus.json')),
    allocations,
  } as unknown as NodeSnapshot;
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}
