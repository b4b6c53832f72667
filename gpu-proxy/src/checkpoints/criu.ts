import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findProcess } from '@nvidia-virtual/service/process-table';
import type { Launcher } from '../host/launcher.js';

/** Where distributions install it. */
const PLACES = ['/usr/local/sbin/criu', '/usr/sbin/criu', '/usr/bin/criu'];
/** It writes 1 GiB/s. The memory of the GPU is not in the process. */
const TIMEOUT_MS = 120_000;
const LOOK_MS = 20;
const DIRECTORY = '--images-dir';
/** The session is its only process, without files that others have. */
const COMMON = ['-v1', '--no-default-config', '--manage-cgroups=ignore'];

/** Waits for CRIU of an earlier gpu-proxy that was killed. @param directory of its files */
export async function awaitCriu(directory: string): Promise<void> {
  const deadline = Date.now() + TIMEOUT_MS;
  while (findProcess(DIRECTORY, directory) && Date.now() < deadline) await sleep(LOOK_MS);
}

/** CRIU: writes a process to files, and makes it again. It is a program of the node. */
export class Criu {
  readonly #file: string;
  readonly #launcher: Launcher;

  private constructor(file: string, launcher: Launcher) {
    this.#file = file;
    this.#launcher = launcher;
  }

  /** @throws Error with a reason if it is not installed, or does not suit the kernel */
  static async find(launcher: Launcher): Promise<Criu> {
    const file = PLACES.find((place) => existsSync(launcher.seen(place)));
    if (file === undefined)
      throw new Error(
        'CRIU is not installed on the node: install the package `criu`, version 4.1 or newer',
      );
    const criu = new Criu(file, launcher);
    await criu.#run(['check'], undefined).catch((error: Error) => {
      throw new Error(`CRIU does not work here (\`criu check\`: ${error.message})`);
    });
    return criu;
  }

  /** Writes the process to the directory. It goes on. @throws Error with CRIU's reason */
  dump(pid: number, directory: string): Promise<void> {
    return this.#run(['dump', '--tree', String(pid), '--leave-running'], directory);
  }

  /** Makes the process again, with its former pid. @throws Error with CRIU's reason */
  restore(directory: string): Promise<void> {
    return this.#run(['restore', '--restore-detached'], directory);
  }

  #run(words: readonly string[], directory: string | undefined): Promise<void> {
    const images = directory === undefined ? [] : [DIRECTORY, directory, '-o', 'log'];
    const args = directory === undefined ? words : [...words, ...COMMON, ...images];
    const [file, all] = this.#launcher.command(this.#file, args, 'query');
    return new Promise((resolve, reject) => {
      execFile(file, all, { timeout: TIMEOUT_MS, killSignal: 'SIGKILL' }, (error, _, said) => {
        const log = directory === undefined ? said : readLog(path.join(directory, 'log'));
        if (error) reject(new Error(firstError(log) ?? error.message));
        else resolve();
      });
    });
  }
}

function readLog(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Such as `(00.1) 13618: Error (criu/files.c:12): Can't open file`, which further ones follow. */
function firstError(log: string): string | undefined {
  const errors = log.split('\n').flatMap((line) => /Error \([^)]*\): (.*)/.exec(line)?.[1] ?? []);
  return errors.find((line) => !line.startsWith('rlimit:'))?.replace(/[^ -~]/g, '?');
}
