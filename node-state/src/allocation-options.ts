import type { Policy, SharingMode } from '@nvidia-virtual/ledger';
import {
  allocationName,
  choice,
  memorySize,
  percent,
  wholeNumber,
} from '@nvidia-virtual/service/configuration/kinds';
import { option } from '@nvidia-virtual/service/configuration/option';

/** Sessions of an allocation for which its quota file has a slot. */
export const MAX_SESSIONS = 240;

export const SHARING_MODES = ['exclusive', 'concurrent'] as const satisfies readonly SharingMode[];
export const POLICIES = ['burst', 'fixed'] as const satisfies readonly Policy[];

/** Limits of an allocation, which a node may set for those that it makes. */
export const LIMIT_OPTIONS = {
  sessions: option(wholeNumber(1, MAX_SESSIONS), {
    help: 'maximum number of processes of an allocation that use the GPU at the same time; a changed limit applies to new allocations',
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
    help: 'maximum number of open handles in all processes of an allocation: contexts, streams, events, modules, kernels',
    default: '1048576',
    reloadable: true,
  }),
};

/** The options of one allocation. They say nothing about a node, so they are flags only. */
export const ALLOCATION_OPTIONS = {
  name: option(allocationName, { help: 'name of the allocation', otherwise: 'none' }),
  memory: option(memorySize, {
    help: 'GPU memory for all processes together, on each GPU of the allocation',
    otherwise: 'all that is left',
  }),
  share: option(percent, { help: "percent of a GPU's time", default: '100' }),
  policy: option(choice(...POLICIES), {
    help: 'burst: may use idle time of the GPU; fixed: never more than its share',
    default: 'burst',
  }),
  priority: option(wholeNumber(-100, 100, 'number'), {
    help: 'an allocation with a higher priority goes first',
    default: '0',
  }),
  mode: option(choice(...SHARING_MODES), {
    help: 'mode of the GPU',
    default: 'exclusive',
  }),
};
