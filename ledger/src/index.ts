export { LedgerError } from './errors.js';
export { ownerOf } from './owner.js';
export * from './records.js';
export { RedisLedger, type ReportedSnapshot } from './redis-ledger.js';
export type { RedisOptions } from './redis-options.js';
