import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { systemReason } from '@nvidia-virtual/service/errors';
import { readIfThere } from '@nvidia-virtual/service/files';
import type { Command } from '../host/launcher.js';

/** A program of NVIDIA's driver. It loads the kernel modules and makes the files in /dev. */
export const NVIDIA_MODPROBE = '/usr/bin/nvidia-modprobe';
/** Of /dev/nvidiactl. The minor that -u takes is that of /dev/nvidia-uvm. */
const CONTROL_MINOR = '255';
const PATIENCE_MS = 60_000;

/** nvidia-modprobe of a machine. */
export interface Modprobe {
  /** Its path in this process. */
  readonly file: string;
  /** The command line that runs it. */
  readonly command: Command;
}

/**
 * Makes NVIDIA's files in /dev. Natively, the first CUDA program after a boot makes them with this
 * setuid program. Our workers must not gain privileges, so they cannot.
 * @param gpus where the kernel module lists the GPUs
 * @returns why it was not possible, as the end of a sentence; undefined: it was
 */
export function makeDeviceFiles(
  { file, command: [program, args] }: Modprobe,
  gpus = '/proc/driver/nvidia/gpus',
): string | undefined {
  if (!existsSync(file)) return 'nvidia-modprobe, which makes it, is not installed';
  const run = (...more: string[]) =>
    execFileSync(program, [...args, ...more], { stdio: 'pipe', timeout: PATIENCE_MS });
  try {
    run('-c', CONTROL_MINOR);
    run(...minorsOf(gpus).flatMap((minor) => ['-c', minor]));
    run('-u', '-c', '0');
    return undefined;
  } catch (error) {
    return `nvidia-modprobe, which makes it, failed: ${reasonOf(error)}`;
  }
}

/** The minor device numbers of the GPUs: `/dev/nvidia0` has 0. */
function minorsOf(gpus: string): string[] {
  if (!existsSync(gpus)) return [];
  return readdirSync(gpus).flatMap(
    (gpu) =>
      /^Device Minor:\s+(\d+)/m.exec(readIfThere(path.join(gpus, gpu, 'information')) ?? '')?.[1] ??
      [],
  );
}

function reasonOf(error: unknown): string {
  const said = String((error as { stderr?: unknown }).stderr ?? '').trim();
  return said === '' ? systemReason(error) : (said.split('\n').at(-1) as string);
}
