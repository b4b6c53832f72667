import type { AllocationSpecification, GpuRecord, NodeSnapshot, SessionRecord, SessionUse, TimeUse } from './records.js';

/** What a node holds is kept in five tables of JSON, split by how often it changes and by who reads it. */
export const TABLES = ['gpus', 'allocations', 'time', 'sessions', 'use'] as const;
export type Table = (typeof TABLES)[number];
export type Rows = ReadonlyMap<string, string>;
export type Content = Readonly<Record<Table, Rows>>;

export interface Change {
  readonly set: readonly (readonly [field: string, value: string])[];
  readonly remove: readonly string[];
}
export type Difference = Readonly<Record<Table, Change>>;

export const NOTHING: Content = tables(() => new Map());
const NO_CHANGE: Difference = tables(() => ({ set: [], remove: [] }));

/** Keeps the rows of a table: GPUs by UUID, allocations by id, sessions by allocation and number. */
export function encode({ gpus, allocations }: NodeSnapshot): Content {
  const sessions = allocations.flatMap((one) => one.sessions);
  return {
    gpus: rows(
      gpus,
      (gpu) => gpu.uuid,
      (gpu) => gpu,
    ),
    allocations: rows(
      allocations,
      (one) => one.specification.id,
      (one) => one.specification,
    ),
    time: rows(
      allocations,
      (one) => one.specification.id,
      (one) => one.time,
    ),
    sessions: rows(
      sessions,
      (one) => sessionKey(one.record),
      (one) => one.record,
    ),
    use: rows(
      sessions,
      (one) => sessionKey(one.record),
      (one) => one.use,
    ),
  };
}

export function difference(from: Content, to: Content): Difference {
  if (from === to) return NO_CHANGE;
  return tables((table) => ({
    set: [...to[table]].filter(([field, value]) => from[table].get(field) !== value),
    remove: [...from[table].keys()].filter((field) => !to[table].has(field)),
  }));
}

export function isEmpty(changes: Difference): boolean {
  return TABLES.every((table) => changes[table].set.length === 0 && changes[table].remove.length === 0);
}

/** How many rows each table has, in the order of TABLES. */
export function sizes(content: Content): string {
  return TABLES.map((table) => content[table].size).join(' ');
}

/** GPUs by index; throws a SyntaxError for what is no JSON. */
export function decodeGpus(content: Pick<Content, 'gpus'>): GpuRecord[] {
  return values<GpuRecord>(content.gpus).sort((a, b) => a.index - b.index);
}

/** Oldest first. */
export function decodeAllocations(
  content: Pick<Content, 'allocations' | 'time'>,
): { specification: AllocationSpecification; time: TimeUse }[] {
  const time = parsed<TimeUse>(content.time);
  return values<AllocationSpecification>(content.allocations)
    .sort((a, b) => compare(a.createdAt, b.createdAt) || compare(a.id, b.id))
    .map((specification) => ({ specification, time: partner(time, specification.id) }));
}

/** By allocation and number. */
export function decodeSessions(content: Pick<Content, 'sessions' | 'use'>): { record: SessionRecord; use: SessionUse }[] {
  const use = parsed<SessionUse>(content.use);
  return values<SessionRecord>(content.sessions)
    .sort((a, b) => compare(a.allocation, b.allocation) || a.number - b.number)
    .map((record) => ({ record, use: partner(use, sessionKey(record)) }));
}

export function decode(node: string, content: Content): NodeSnapshot {
  const sessions = groupSessions(content);
  const allocations = decodeAllocations(content).map((one) => ({ ...one, sessions: sessions.get(one.specification.id) ?? [] }));
  return { node, gpus: decodeGpus(content), allocations };
}

function groupSessions(content: Content): Map<string, { record: SessionRecord; use: SessionUse }[]> {
  const groups = new Map<string, { record: SessionRecord; use: SessionUse }[]>();
  for (const session of decodeSessions(content)) {
    const group = groups.get(session.record.allocation);
    if (group) group.push(session);
    else groups.set(session.record.allocation, [session]);
  }
  return groups;
}

function sessionKey(record: SessionRecord): string {
  return `${record.allocation}/${record.number}`;
}

function tables<T>(make: (table: Table) => T): Record<Table, T> {
  return Object.fromEntries(TABLES.map((table) => [table, make(table)])) as Record<Table, T>;
}

function rows<T>(records: readonly T[], key: (record: T) => string, value: (record: T) => unknown): Rows {
  return new Map(records.map((record) => [key(record), JSON.stringify(value(record))]));
}

function values<T>(rows: Rows): T[] {
  return [...rows.values()].map((text) => JSON.parse(text) as T);
}

function parsed<T>(rows: Rows): Map<string, T> {
  return new Map([...rows].map(([key, text]) => [key, JSON.parse(text) as T]));
}

/** Both tables are written by one script; a row without its partner was put there by somebody else. */
function partner<T>(rows: ReadonlyMap<string, T>, key: string): T {
  const row = rows.get(key);
  if (row === undefined) throw new SyntaxError(`${key} has no figures`);
  return row;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
