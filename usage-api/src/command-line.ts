import { ApiError } from '@nvidia-virtual/kube-common/api-server';
import { LedgerError } from '@nvidia-virtual/ledger';
import { flagsOf } from '@nvidia-virtual/service/configuration/flags';
import { loadOptions } from '@nvidia-virtual/service/configuration/load';
import type { EndSignal } from '@nvidia-virtual/service/end-signal';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { Log } from '@nvidia-virtual/service/log';
import { Command } from 'commander';
import { UsageError } from './errors.js';
import { OPTIONS } from './options.js';
import { UsageService } from './service.js';

const DESCRIPTION =
  'Aggregated API server for usage.nvidia-virtual.io: GPU usage of pods and nodes. ' +
  'Each option can also be set by an environment variable: NVIDIA_VIRTUAL_ and its name.';

/** @returns the exit status: 0 ended by a signal, 1 failed, 2 wrong usage. */
export async function execute(argv: readonly string[], endSignal: EndSignal): Promise<number> {
  const program = new Command('nvidia-virtual-usage-api').description(DESCRIPTION);
  for (const flag of flagsOf(OPTIONS)) program.addOption(flag);
  program.action((flags: Record<string, unknown>) => serve(flags, endSignal));
  try {
    await program.parseAsync(argv);
    return 0;
  } catch (error) {
    const known =
      error instanceof ProxyError ||
      error instanceof UsageError ||
      error instanceof LedgerError ||
      error instanceof ApiError;
    if (!known) throw error;
    process.stderr.write(`nvidia-virtual-usage-api: ${error.message}\n`);
    return error instanceof ProxyError ? error.exitStatus : 1;
  }
}

async function serve(flags: Record<string, unknown>, endSignal: EndSignal): Promise<void> {
  const options = loadOptions(OPTIONS, { flags, environment: process.env });
  const { logger } = new Log({ file: '-', level: options.logLevel });
  const service = new UsageService(options, logger);
  await service.start();
  logger.info({ signal: await endSignal.first() }, 'ending');
  await service.stop();
}
