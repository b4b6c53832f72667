import { ALLOCATION_OPTIONS } from '@nvidia-virtual/node-state/allocation-options';
import { DEFAULT_STATE } from '@nvidia-virtual/node-state/paths';
import {
  allocationName,
  choice,
  filePath,
  gpuName,
  many,
  wholeNumber,
} from '@nvidia-virtual/service/configuration/kinds';
import { option, type Values } from '@nvidia-virtual/service/configuration/option';
import { NODE_OPTIONS } from './configuration/schema.js';

// The options of the commands, which are flags only. Those of a node and of an allocation are in
// configuration/schema.

const { backend, managedMemory, log } = NODE_OPTIONS;
const { memory, share, policy, priority, mode } = ALLOCATION_OPTIONS;

/** Options of commands that call the admin API. */
export const CLIENT_OPTIONS = {
  state: option(filePath, {
    help: 'the state directory of the gpu-proxy to ask',
    default: DEFAULT_STATE,
  }),
};

const output = option(choice('json'), {
  help: 'json: for programs, as in node-state/proto/admin.proto',
  otherwise: 'for people',
  short: '-o',
});

export const CREATE_OPTIONS = {
  ...CLIENT_OPTIONS,
  output,
  gpu: option(many(gpuName), {
    help: 'which GPU; several may be given',
    otherwise: 'the fullest that has room',
  }),
  ...ALLOCATION_OPTIONS,
  latency: option(choice('low'), {
    help: 'low: accepts short windows, which cost throughput, if all on its GPU do',
    otherwise: 'normal',
  }),
};

export const LIST_OPTIONS = { ...CLIENT_OPTIONS, output };
export const TOP_OPTIONS = {
  ...LIST_OPTIONS,
  count: option(wholeNumber(1, 999_999_999), {
    help: 'end after this number of updates',
    otherwise: 'at Ctrl-C',
    short: '-n',
  }),
};

export const RUN_OPTIONS = {
  socket: option(filePath, {
    help: 'use the gpu-proxy that serves this socket',
    otherwise: 'an embedded one',
  }),
  state: option(filePath, {
    help:
      'create an allocation on the node that serves this state directory, ' +
      'and delete it after the run',
    otherwise: 'an embedded one',
  }),
  allocation: option(
    { ...allocationName, placeholder: 'id|name' },
    {
      help: 'use this allocation of the node that serves the state directory',
      otherwise: 'one of its own',
    },
  ),
  ...{ backend, managedMemory, log },
  gpu: option(many(gpuName), {
    help: 'which GPU; several may be given',
    otherwise: 'all; with --state the node chooses one',
  }),
  memory: option(memory.kind, {
    help: memory.details.help,
    otherwise: 'the whole GPU; with --state all that is left',
  }),
  ...{ share, policy, priority, mode },
  trace: option(filePath, {
    help:
      'write each driver call, kernel and copy to this file: for Perfetto if its name ends ' +
      'in .json, else as text',
    otherwise: 'none',
  }),
};

/** Options of `serve` in addition to those of a node. */
export const SERVE_OPTIONS = {
  memory: option(memory.kind, {
    help: `with --socket: ${memory.details.help}`,
    otherwise: 'the whole GPU',
  }),
};

export type ClientOptions = Values<typeof CLIENT_OPTIONS>;
export type CreateOptions = Values<typeof CREATE_OPTIONS>;
export type ListOptions = Values<typeof LIST_OPTIONS>;
export type TopOptions = Values<typeof TOP_OPTIONS>;
export type RunOptions = Values<typeof RUN_OPTIONS> & {
  readonly verbose: boolean;
  readonly summary: boolean;
};

/** Flags parsed by commander, by name. */
export type Flags = Readonly<Record<string, unknown>>;
