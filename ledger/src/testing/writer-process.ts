import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { NodeSnapshot } from '../records.js';
import { RedisLedger } from '../redis-ledger.js';

/**
 * A node in its own process, for tests that kill it. Publishes the content of its directory 20
 * times a second. Arguments: Redis socket, node name, directory, TTL in ms.
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

/** Reads the snapshot from one file per object. Incomplete files are skipped. */
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
