export { LEDGER_ERROR_CODES, LedgerError, type LedgerErrorCode } from './errors.js';
export type {
  AllocationView,
  Ledger,
  LedgerEvents,
  LedgerState,
  NodeView,
  ReadOptions,
  SessionView,
  Told,
  WriterIdentity,
} from './ledger.js';
export { MemoryLedger, MemoryStore } from './memory-ledger.js';
export { ownerOf } from './owner.js';
export * from './records.js';
export { RedisLedger, type RedisLedgerOptions } from './redis-ledger.js';
export type { RedisOptions } from './redis-options.js';
