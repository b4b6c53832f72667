import { readFileSync } from 'node:fs';
import path from 'node:path';
import type {
  AllocationSpecification,
  Latency,
  Limits,
  Policy,
  SessionRecord,
  SharingMode,
  TraceMode,
} from '@nvidia-virtual/ledger';
import { loadFlags } from '@nvidia-virtual/service/configuration/load';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import {
  ALLOCATION_OPTIONS,
  LIMIT_OPTIONS,
  MAX_SESSIONS,
  POLICIES,
  SHARING_MODES,
} from './allocation-options.js';
import { SESSION_RECORD } from './paths.js';

const VERSION = 1;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$/;
const ID = /^[0-9a-f]{16}$/;

/** Limits of a node without configured limits. */
export const DEFAULT_LIMITS = loadFlags(LIMIT_OPTIONS, {});
const DEFAULTS = loadFlags(ALLOCATION_OPTIONS, {});

/** The fields of a specification that can be requested. */
export interface RequestedSpecification {
  readonly name?: string | undefined;
  /** 1 to 100. */
  readonly share?: number | undefined;
  readonly policy?: Policy | undefined;
  /** -100 to 100. */
  readonly priority?: number | undefined;
  readonly mode?: SharingMode | undefined;
  readonly latency?: Latency | undefined;
  readonly limits?: Partial<Limits> | undefined;
  readonly trace?: TraceMode | undefined;
  readonly uid?: number | undefined;
}

type Checked = Pick<
  AllocationSpecification,
  'share' | 'policy' | 'priority' | 'mode' | 'latency' | 'limits' | 'trace'
>;

/** Validates the request and fills in defaults. @throws ProxyError OPTION_VALUE */
export function checkRequest(requested: RequestedSpecification): Checked {
  const {
    name,
    share = DEFAULTS.share,
    policy = DEFAULTS.policy,
    priority = DEFAULTS.priority,
    mode = DEFAULTS.mode,
    latency,
    trace,
    uid,
  } = requested;
  const limits = { ...DEFAULT_LIMITS, ...requested.limits };
  if (name !== undefined)
    require('name', name, NAME.test(name) &&
      !ID.test(name), 'up to 128 of A-Z a-z 0-9 . _ / -, and not the form of an id');
  require('share', share, isWhole(share, 1, 100), 'a whole number of percent, 1 to 100');
  require('policy', policy, POLICIES.includes(policy), POLICIES.join(' or '));
  require('priority', priority, isWhole(priority, -100, 100), 'a whole number, -100 to 100');
  require('mode', mode, SHARING_MODES.includes(mode), SHARING_MODES.join(' or '));
  require('latency', latency, latency === undefined || latency === 'low', 'low');
  require('trace', trace, trace === undefined || trace === 'summary', 'summary');
  require('limits.sessions', limits.sessions, isWhole(
    limits.sessions,
    1,
    MAX_SESSIONS,
  ), `1 to ${MAX_SESSIONS}`);
  require('limits.pinnedMemory', limits.pinnedMemory, isWhole(
    limits.pinnedMemory,
    0,
  ), '0 (no limit) or a number of bytes');
  for (const key of ['threads', 'handles'] as const)
    require(`limits.${key}`, limits[key], isWhole(
      limits[key],
      1,
      2 ** 31,
    ), 'a whole number above 0');
  if (uid !== undefined)
    require('uid', uid, isWhole(uid, 1, 2 ** 32 - 2), 'the number of a user other than root');
  return { share, policy, priority, mode, latency, limits, trace };
}

function require(key: string, value: unknown, holds: boolean, allowed: string): void {
  if (!holds)
    throw new ProxyError('OPTION_VALUE', { where: key, value: JSON.stringify(value), allowed });
}

/**
 * Reads a specification. @throws ProxyError SPECIFICATION_BROKEN; SPECIFICATION_NEWER for a later
 * version
 */
export function readSpecification(file: string): AllocationSpecification {
  const value = readJson(file);
  if (typeof value['version'] === 'number' && value['version'] > VERSION)
    throw new ProxyError('SPECIFICATION_NEWER', {
      file,
      version: value['version'],
      known: VERSION,
    });
  const specification = {
    name: undefined,
    uid: undefined,
    ...value,
  } as unknown as AllocationSpecification;
  try {
    if (value['version'] !== VERSION) throw new Error('it has no version');
    if (typeof specification.id !== 'string' || !ID.test(specification.id))
      throw new Error('it has no id');
    if (!Array.isArray(specification.gpus)) throw new Error('it names no GPUs');
    if (!isWhole(specification.memory, 0)) throw new Error('its memory is not a number of bytes');
    return { ...specification, ...checkRequest(specification) };
  } catch (error) {
    throw new ProxyError('SPECIFICATION_BROKEN', { file, reason: (error as Error).message });
  }
}

/**
 * Reads the reserved resources of an allocation that cannot be served, for any version of its
 * specification. Undefined if not even those can be read.
 */
export function readReserved(file: string): AllocationSpecification | undefined {
  try {
    const value = {
      ...DEFAULTS,
      limits: DEFAULT_LIMITS,
      ...readJson(file),
    } as unknown as AllocationSpecification;
    const { gpus, memory, share } = value;
    return Array.isArray(gpus) && isWhole(memory, 0) && isWhole(share, 1, 100) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the record in a session's directory. Undefined if it is missing or invalid. */
export function readSession(directory: string): SessionRecord | undefined {
  try {
    const record = readJson(path.join(directory, SESSION_RECORD)) as unknown as SessionRecord;
    const whole = [
      record.version,
      record.number,
      record.slot,
      record.client.pid,
      record.worker.pid,
    ].every((value) => isWhole(value, 0));
    return whole && record.version === VERSION && typeof record.startedAt === 'string'
      ? record
      : undefined;
  } catch {
    return undefined;
  }
}

function readJson(file: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch (error) {
    throw new ProxyError('SPECIFICATION_BROKEN', { file, reason: systemReason(error) });
  }
  throw new ProxyError('SPECIFICATION_BROKEN', { file, reason: 'it is not an object' });
}

function isWhole(value: unknown, lowest: number, highest = Number.MAX_SAFE_INTEGER): boolean {
  return Number.isSafeInteger(value) && (value as number) >= lowest && (value as number) <= highest;
}
