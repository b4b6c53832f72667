import { defineErrors } from '@nvidia-virtual/service/error-table';

/**
 * Errors of the ledger: code and sentence (what happened, to which object, what to do). A test
 * compares them with README.md. A code is never reused for another meaning.
 */
const TABLE = {
  REDIS_OPTION: '{key} is {value}: {allowed}.',
  REDIS_FILE:
    '{key} names {path}, which cannot be read: {reason}. Check the path and who may read the file.',
  REDIS_UNREACHABLE:
    'Redis at {address} cannot be reached: {reason}. Check that it runs, ' +
    'and that the address is right.',
  REDIS_SILENT:
    'Redis at {address} gave no answer for {milliseconds} ms. ' +
    'Check whether it is paused, stopped or overloaded.',
  REDIS_CLOSED:
    'Redis at {address} closed the connection. Check that it runs, and whether it expects TLS.',
  REDIS_TLS:
    'No TLS connection to Redis at {address}: {reason}. ' +
    'Check that it serves TLS there, and CA, certificate, key and server name.',
  REDIS_PASSWORD:
    'Redis at {address} does not let {user} in: {reason}. Check user name and password.',
  REDIS_PERMISSION:
    'Redis at {address} does not give {user} the rights that the ledger needs: {reason}. ' +
    'ledger/README.md lists them.',
  REDIS_DATABASE:
    'Redis at {address} has no database {database}: {reason}. ' +
    'Choose another, or raise `databases` in its configuration.',
  REDIS_LOADING:
    'Redis at {address} is still loading its data from disk. Wait: it answers when it is ready.',
  REDIS_MEMORY:
    'Redis at {address} has no memory left: {reason}. Raise its maxmemory, or make room.',
  REDIS_READ_ONLY:
    'Redis at {address} is a replica that takes no writes. Give the address of its primary.',
  REDIS_DISK:
    'Redis at {address} refuses writes because it cannot save to its disk: {reason}. ' +
    'Look at that disk and at its log.',
  REDIS_BUSY:
    'Redis at {address} is busy with a script. It answers again when the script ends, ' +
    'or after SCRIPT KILL.',
  REDIS_CLUSTER:
    'Redis at {address} is one of several nodes of a cluster and sends us to another: ' +
    '{reason}. Give the address of a single server.',
  REDIS_FAILED: 'Redis at {address} refused a command: {reason}. Look at its log.',
  LEDGER_CONTENT:
    'The key {key} in Redis at {address} does not hold a valid record: {reason}. ' +
    'Delete the key; its node writes it again within seconds.',
  LEDGER_CLOSED: 'The ledger is closed and can no longer be read. Open another one.',
  LEDGER_READER:
    'This ledger was opened for reading and publishes nothing. Open it with a writer: ' +
    'node and owner.',
  NODE_NAME:
    '{value} cannot be the name of a node: letters, digits, dots, dashes and underscores, ' +
    'a letter or digit first, at most 253.',
  NODE_OTHER:
    'This ledger writes for node {node}, and was given what node {other} holds. ' +
    'Open one ledger for each node.',
  NODE_TAKEN:
    'Another machine already keeps the ledger as node {node}. ' +
    'This one is left out until the other {end}. Give each machine a name of its own.',
  NODE_SUPERSEDED:
    'A newer gpu-proxy of the same machine keeps the ledger as node {node}. ' +
    'This one is left out until the newer one {end}. Stop one of them.',
  GPU_TAKEN:
    'Node {other} already keeps GPU {gpu}. Node {node} is left out of the ledger until the ' +
    'other {end}. Let one gpu-proxy serve each GPU.',
} as const satisfies Record<string, string>;

export type LedgerErrorCode = keyof typeof TABLE;
/** Thrown by the ledger, and passed with its events. */
export class LedgerError extends defineErrors('LedgerError', TABLE) {}
