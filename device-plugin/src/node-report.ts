import { writeFileSync } from 'node:fs';
import type { Values } from '@nvidia-virtual/service/configuration/option';
import { systemReason } from '@nvidia-virtual/service/errors';
import { findConflict } from './coexistence.js';
import { PluginError } from './errors.js';
import { checkNode, listGpus } from './node-check.js';
import type { CHECK_OPTIONS } from './options.js';

type ReportOptions = Values<typeof CHECK_OPTIONS> & { readonly node: string };

/** The kubelet keeps this much of a termination message. */
const MOST_BYTES = 4096;

/**
 * Writes what this node lacks, one sentence per line. An empty file means nothing.
 * @throws PluginError NODE_REPORT_NOT_WRITTEN
 */
export async function writeNodeReport(options: ReportOptions): Promise<void> {
  const { kubeletRoot, allow = [], report: file } = options;
  const conflict = await findConflict({ ...options, kubeletRoot, allow }, ownGpus(options.gpu));
  const problems = [...checkNode(options), ...(conflict ? [conflict] : [])];
  const text = problems.map(({ message }) => `${message}\n`).join('');
  try {
    writeFileSync(file, Buffer.from(text).subarray(0, MOST_BYTES));
  } catch (error) {
    throw new PluginError('NODE_REPORT_NOT_WRITTEN', { file, reason: systemReason(error) });
  }
}

/** UUIDs of the GPUs that are named by index or UUID; of all without names. */
function ownGpus(names: readonly string[] | undefined): string[] {
  const all = listGpus();
  return names === undefined
    ? all
    : all.filter(
        (uuid, index) =>
          names.includes(String(index)) ||
          names.some((name) => name.toLowerCase() === uuid.toLowerCase()),
      );
}
