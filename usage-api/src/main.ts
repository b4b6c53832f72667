import { loadOptions } from '@nvidia-virtual/gpu-proxy/configuration/configuration';
import { flagsOf } from '@nvidia-virtual/gpu-proxy/configuration/flags';
import { ProxyError } from '@nvidia-virtual/gpu-proxy/errors';
import { Log } from '@nvidia-virtual/gpu-proxy/log';
import { ApiError } from '@nvidia-virtual/kubernetes/api-server';
import { LedgerError } from '@nvidia-virtual/ledger';
import { Command } from 'commander';
import { UsageError } from './errors.js';
import { OPTIONS } from './options.js';
import { UsageService } from './service.js';

const program = new Command('nvidia-virtual-usage-api').description(
  'Serves usage.nvidia-virtual.io: what pods and nodes use of their GPUs. Each option is a variable too: NVIDIA_VIRTUAL_ and its name.',
);
for (const flag of flagsOf(OPTIONS)) program.addOption(flag);
program.action(async (flags: Record<string, unknown>) => {
  const options = loadOptions(OPTIONS, { flags, environment: process.env });
  const { logger } = new Log({ file: '-', level: options.logLevel });
  const service = new UsageService(options, logger);
  const stop = () => void service.stop().then(() => process.exit(0));
  process.once('SIGTERM', stop).once('SIGINT', stop);
  await service.start();
});

try {
  await program.parseAsync();
} catch (error) {
  const known = error instanceof ProxyError || error instanceof UsageError || error instanceof LedgerError || error instanceof ApiError;
  if (!known) throw error;
  console.error(`nvidia-virtual-usage-api: ${error.message}`);
  process.exit(error instanceof ProxyError ? error.exitStatus : 1);
}
