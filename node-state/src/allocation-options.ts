import type { Policy, SharingMode } from '@nvidia-virtual/ledger';
import {
  allocationName,
  choice,
  memorySize,
  percent,
  wholeNumber,
} from '@nvidia-virtual/service/configuration/kinds';
import { option } from '@nvidia-virtual/service/configuration/option';

/** Number of session slots in the quota file of an allocation. */
export const MAX_SESSIONS = 240;

export const SHARING_MODES = ['exclusive', 'concurrent'] as const satisfies readonly SharingMode[];
export const POLICIES = ['burst', 'fixed'] as const satisfies readonly Policy[];

/** Limits of an allocation. A node can configure defaults for new allocations. */
export const LIMIT_OPTIONS = {
  sessions: option(wholeNumber(1, MAX_SESSIONS), {
    help:
      'maximum number of processes of an allocation that use the GPU at the same time; ' +
      'a changed limit applies to new allocations',
    default: '64',
    reloadable: true,
  }),
  pinnedMemory: option(memorySize, {
    help: 'maximum pinned host memory of an allocation',
    default: '16GiB',
    reloadable: true,
  }),
  threads: option(wholeNumber(1, 65536), {
    help: 'maximum number of threads that use the GPU, in all processes of an allocation',
    default: '4096',
    reloadable: true,
  }),
  handles: option(wholeNumber(16, 16777216), {
    help:
      'maximum number of open handles in all processes of an allocation: ' +
      'contexts, streams, events, modules, kernels',
    default: '1048576',
    reloadable: true,
  }),
};

/** Options of one allocation. They are flags only, because they do not configure a node. */
export const ALLOCATION_OPTIONS = {
  name: option(allocationName, { help: 'name of the allocation', otherwise: 'none' }),
  memory: option(memorySize, {
    help: 'GPU memory for all processes together, on each GPU of the allocation',
    otherwise: 'all memory that is left',
  }),
  share: option(percent, { help: "percent of a GPU's time", default: '100' }),
  policy: option(choice(...POLICIES), {
    help: 'burst: may use idle time of the GPU; fixed: never more than its share',
    default: 'burst',
  }),
  priority: option(wholeNumber(-100, 100, 'number'), {
    help: 'allocations with a higher priority run first',
    default: '0',
  }),
  mode: option(choice(...SHARING_MODES), {
    help: 'mode of the GPU',
    default: 'exclusive',
  }),
};
