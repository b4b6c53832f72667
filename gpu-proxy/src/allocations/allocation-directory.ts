import { chownSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { AllocationSpecification } from '@nvidia-virtual/ledger';
import { GRANT } from '@nvidia-virtual/node-state/grant';
import {
  clientDirectoryIn,
  clientSocketIn,
  HOLDER,
  SESSIONS,
  SPECIFICATION,
} from '@nvidia-virtual/node-state/paths';
import { readSpecification } from '@nvidia-virtual/node-state/specification';
import {
  makeDirectoryAtomically,
  readIfThere,
  removeDirectoryAtomically,
  writeFileAtomically,
} from '@nvidia-virtual/service/files';
import type { ProcessIdentity } from '@nvidia-virtual/service/process-table';
import { ExportTable, SHARING } from './export-table.js';
import { QuotaFile } from './quota.js';

/** Holds the number of the latest session. */
const LAST_NUMBER = 'last-session';
/** The files of an allocation except its specification and its socket. */
const PARTS = ['cache', SESSIONS, 'quota', SHARING] as const;

/**
 * The files of an allocation: its specification (the source of truth), the memory account, the
 * socket of its clients, and a directory for each session.
 */
export class AllocationDirectory {
  readonly path: string;
  #specification: AllocationSpecification;
  #lastNumber: number;

  private constructor(directory: string, specification: AllocationSpecification) {
    this.path = directory;
    this.#specification = specification;
    this.#lastNumber = Number.parseInt(readIfThere(this.#file(LAST_NUMBER)) ?? '', 10) || 0;
  }

  /** Creates the directory atomically, without a socket. */
  static create(
    parent: string,
    specification: AllocationSpecification,
    holder: ProcessIdentity | undefined,
  ): AllocationDirectory {
    const directory = path.join(parent, specification.id);
    makeDirectoryAtomically(directory, 0o711, (unfinished) => {
      if (holder) writeFileAtomically(path.join(unfinished, HOLDER), JSON.stringify(holder));
      mkdirSync(clientDirectoryIn(unfinished), { mode: 0o755 });
      makeParts(unfinished, specification);
    });
    return new AllocationDirectory(directory, specification);
  }

  /**
   * Turns the directory of a grant into that of an allocation. The specification is written last:
   * until then the directory is a grant.
   */
  static bind(directory: string, specification: AllocationSpecification): AllocationDirectory {
    removeParts(directory);
    makeParts(directory, specification);
    return new AllocationDirectory(directory, specification);
  }

  /** Opens the directory of an earlier gpu-proxy. @throws ProxyError */
  static open(directory: string): AllocationDirectory {
    const specification = readSpecification(path.join(directory, SPECIFICATION));
    const opened = new AllocationDirectory(directory, specification);
    const hasExports = existsSync(path.join(directory, SHARING));
    if (!hasExports) {
      ExportTable.make(directory); // its gpu-proxy was a version without exports
      opened.giveToWorkers();
    }
    return opened;
  }

  get specification(): AllocationSpecification {
    return this.#specification;
  }

  /** Replaces the specification. Survives a crash of the machine. */
  save(specification: AllocationSpecification): void {
    writeSpecification(this.path, specification);
    this.#specification = specification;
  }

  /** True if the kubelet granted it. The directory then stays for the life of its pod. */
  get granted(): boolean {
    return existsSync(this.#file(GRANT));
  }

  /** The process whose end drains the allocation. */
  get holder(): ProcessIdentity | undefined {
    const text = readIfThere(this.#file(HOLDER));
    return text === undefined ? undefined : (JSON.parse(text) as ProcessIdentity);
  }

  /** Where the driver of its workers caches compiled code. */
  get cache(): string {
    return this.#file('cache');
  }

  /** The directories that its workers write to. */
  get written(): string[] {
    return [this.cache, this.sharing];
  }

  get quota(): string {
    return this.#file('quota');
  }

  /** The table of exported memory. */
  get sharing(): string {
    return this.#file(SHARING);
  }

  get sessions(): string {
    return this.#file(SESSIONS);
  }

  get socket(): string {
    return clientSocketIn(this.path);
  }

  /** Session numbers are never reused. @throws a system error */
  nextSessionNumber(): number {
    this.#lastNumber++;
    writeFileAtomically(this.#file(LAST_NUMBER), String(this.#lastNumber));
    return this.#lastNumber;
  }

  /** Lets the user of the workers write to their directories. */
  giveToWorkers(): void {
    const { uid } = this.#specification;
    if (uid === undefined) return;
    chownSync(this.cache, uid, uid);
    chownSync(this.sharing, process.getuid?.() ?? 0, uid); // a worker's group has its user's number
  }

  /** Empties what workers write to. Requires that no session is left. */
  emptyWritten(): void {
    ExportTable.clean(this.path);
    rmSync(this.cache, { recursive: true, force: true });
    mkdirSync(this.cache, { mode: 0o700 });
    this.giveToWorkers();
  }

  /** Turns the directory back into that of a grant. */
  unbind(): void {
    rmSync(this.#file(SPECIFICATION), { force: true });
    removeParts(this.path);
  }

  remove(): void {
    removeDirectoryAtomically(this.path);
  }

  #file(name: string): string {
    return path.join(this.path, name);
  }
}

function makeParts(directory: string, specification: AllocationSpecification): void {
  mkdirSync(path.join(directory, 'cache'), { mode: 0o700 });
  mkdirSync(path.join(directory, SESSIONS), { mode: 0o700 });
  ExportTable.make(directory);
  QuotaFile.create(path.join(directory, 'quota'), specification.memory).close();
  writeSpecification(directory, specification);
}

function removeParts(directory: string): void {
  for (const part of PARTS) rmSync(path.join(directory, part), { recursive: true, force: true });
}

function writeSpecification(directory: string, specification: AllocationSpecification): void {
  writeFileAtomically(
    path.join(directory, SPECIFICATION),
    `${JSON.stringify(specification, undefined, 2)}\n`,
    { durable: true },
  );
}
