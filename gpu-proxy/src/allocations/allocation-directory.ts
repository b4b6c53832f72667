import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { AllocationSpecification } from '@nvidia-virtual/ledger';
import { SPECIFICATION } from '@nvidia-virtual/node-state/paths';
import { ProxyError } from '@nvidia-virtual/service/errors';
import {
  makeDirectoryAtomically,
  readIfThere,
  writeFileAtomically,
} from '@nvidia-virtual/service/files';
import type { ProcessIdentity } from '@nvidia-virtual/service/process-table';
import { ExportTable, SHARING } from './export-table.js';
import { QuotaFile } from './quota.js';

const HOLDER = 'holder.json';
/** The files of an allocation except its specification and its socket. */
const PARTS = ['cache', 'sessions', 'quota', SHARING] as const;

/** Creates the directory atomically. Clients cannot connect before listen(). */
export function makeAllocationDirectory(
  directory: string,
  specification: AllocationSpecification,
  holder: ProcessIdentity | undefined,
): void {
  makeDirectoryAtomically(directory, 0o711, (unfinished) => {
    if (holder) writeFileAtomically(path.join(unfinished, HOLDER), JSON.stringify(holder));
    mkdirSync(path.join(unfinished, 'client'), { mode: 0o755 });
    makeParts(unfinished, specification);
  });
}

/** The process whose end drains the allocation. */
export function readHolder(directory: string): ProcessIdentity | undefined {
  const text = readIfThere(path.join(directory, HOLDER));
  return text === undefined ? undefined : (JSON.parse(text) as ProcessIdentity);
}

export function makeParts(directory: string, specification: AllocationSpecification): void {
  mkdirSync(path.join(directory, 'cache'), { mode: 0o700 });
  mkdirSync(path.join(directory, 'sessions'), { mode: 0o700 });
  ExportTable.make(directory);
  QuotaFile.create(path.join(directory, 'quota'), specification.memory).close();
  writeSpecification(directory, specification);
}

export function removeParts(directory: string): void {
  for (const part of PARTS) rmSync(path.join(directory, part), { recursive: true, force: true });
}

export function writeSpecification(
  directory: string,
  specification: AllocationSpecification,
): void {
  writeFileAtomically(
    path.join(directory, SPECIFICATION),
    `${JSON.stringify(specification, undefined, 2)}\n`,
    { durable: true },
  );
}

/** Holds the number of the latest session. Session numbers are never reused. */
function lastNumberFile(directory: string): string {
  return path.join(directory, 'last-session');
}

export function readLastNumber(directory: string): number {
  return Number.parseInt(readIfThere(lastNumberFile(directory)) ?? '', 10) || 0;
}

export function openQuota(file: string): QuotaFile {
  try {
    return QuotaFile.open(file);
  } catch (error) {
    throw new ProxyError('SPECIFICATION_BROKEN', { file, reason: (error as Error).message });
  }
}

/** @throws a system error */
export function writeLastNumber(directory: string, number: number): void {
  writeFileAtomically(lastNumberFile(directory), String(number));
}
