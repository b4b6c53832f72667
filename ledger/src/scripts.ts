import { Script } from './script.js';

/**
 * What must happen at once in Redis. Lua as 6.2 has it, and no key that is not named: so they also run on Valkey, and on a cluster. None
 * of them writes before it knows that it may.
 */

/**
 * Takes the number of a new writer: later than any before it, also after everything was deleted, since it follows the clock.
 * KEYS: instance. ARGV: how long to remember it, ms. Answers the number.
 */
export const BEGIN = new Script(`
local now = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[1]) or '0')
local number = string.format('%.0f', math.max(now[1] * 1000 + math.floor(now[2] / 1000), last + 1))
redis.call('SET', KEYS[1], number, 'PX', ARGV[1])
return number
`);

/**
 * Takes or renews all GPUs of a node, or none, and the node's place among the nodes.
 * KEYS: nodes, a gpu each. ARGV: node, owner, lease in ms. Answers {} or the first GPU (counted from 1) that another has, and that one's name.
 */
export const CLAIM = new Script(`
local claim = ARGV[1] .. ' ' .. ARGV[2]
for i = 2, #KEYS do
  local holder = redis.call('GET', KEYS[i])
  if holder and holder ~= claim then return {i - 1, holder} end
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[3]), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
for i = 2, #KEYS do redis.call('SET', KEYS[i], claim, 'PX', ARGV[3]) end
return {}
`);

/**
 * Brings a node's tables from one revision to another, and renews its lease.
 * KEYS: lease, the tables. ARGV: owner, instance, revision that must be there (-1: whatever is there is replaced), revision that will be
 * there, lease in ms, how long the tables stay in ms, number of rows that each table will have; then for each table: how many rows are
 * set, field and value of each, how many are removed, field of each.
 * Answers 'written'; 'anew' when something else is there than expected; 'taken' by another owner; 'superseded' by a newer writer.
 * A writer's command that was held up and comes late does nothing: its revision or its instance is no longer the newest.
 * The first command that writes is one that Redis refuses when it has no memory left; after it nothing is refused half-way.
 */
export const WRITE = new Script(`
local FIRST, CHUNK = 8, 4000
local held = redis.call('HMGET', KEYS[1], 'owner', 'instance', 'revision', 'sizes')
local anew = ARGV[3] == '-1'
if held[1] then
  if held[1] ~= ARGV[1] then return 'taken' end
  if tonumber(held[2]) > tonumber(ARGV[2]) then return 'superseded' end
  local same = held[2] == ARGV[2]
  if anew and same and tonumber(held[3]) >= tonumber(ARGV[4]) then return 'anew' end
  if not anew and not (same and held[3] == ARGV[3]) then return 'anew' end
elseif not anew then
  return 'anew'
end
if not anew then
  local sizes = {}
  for i = 2, #KEYS do sizes[i - 1] = redis.call('HLEN', KEYS[i]) end
  if table.concat(sizes, ' ') ~= held[4] then return 'anew' end
end
if anew or ARGV[3] ~= ARGV[4] then
  redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'instance', ARGV[2], 'revision', ARGV[4], 'lease', ARGV[5], 'sizes', ARGV[7])
end
local at = FIRST
local function apply(command, key, step)
  local last = at + ARGV[at] * step
  at = at + 1
  while at <= last do
    local to = math.min(last, at + CHUNK - 1)
    redis.call(command, key, unpack(ARGV, at, to))
    at = to + 1
  end
end
for i = 2, #KEYS do
  if anew then redis.call('DEL', KEYS[i]) end
  apply('HSET', KEYS[i], 2)
  apply('HDEL', KEYS[i], 1)
  redis.call('PEXPIRE', KEYS[i], ARGV[6])
end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 'written'
`);

/**
 * Takes a node out, if this writer wrote it.
 * KEYS: lease, the tables. ARGV: owner, instance. Answers 1 when it did.
 */
export const WITHDRAW = new Script(`
local held = redis.call('HMGET', KEYS[1], 'owner', 'instance')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] then return 0 end
redis.call('DEL', unpack(KEYS))
return 1
`);

/**
 * Gives a node's place and GPUs back.
 * KEYS: nodes, a gpu each. ARGV: node, owner.
 */
export const RELEASE = new Script(`
local claim = ARGV[1] .. ' ' .. ARGV[2]
redis.call('ZREM', KEYS[1], ARGV[1])
for i = 2, #KEYS do
  if redis.call('GET', KEYS[i]) == claim then redis.call('DEL', KEYS[i]) end
end
return 1
`);
