import { ApiError } from '@nvidia-virtual/kube-common/api-server';
import { flagsOf } from '@nvidia-virtual/service/configuration/flags';
import { loadOptions } from '@nvidia-virtual/service/configuration/load';
import type { Schema } from '@nvidia-virtual/service/configuration/option';
import type { EndSignal } from '@nvidia-virtual/service/end-signal';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { Log } from '@nvidia-virtual/service/log';
import { Command } from 'commander';
import type { Logger } from 'pino';
import { SchedulerError } from './errors.js';
import { ExtenderService } from './extender/extender-service.js';
import { EXTENDER_OPTIONS, WEBHOOK_OPTIONS } from './options.js';
import { WebhookService } from './webhook/webhook-service.js';

interface Service {
  end(): Promise<void>;
}

/** @returns the exit status: 0 ended by a signal, 1 failed, 2 wrong usage. */
export async function execute(argv: readonly string[], endSignal: EndSignal): Promise<number> {
  let ended: Promise<number> = Promise.resolve(0);
  const program = new Command('nvidia-virtual-scheduler-ext').description(
    'Places pods that ask for nvidia-virtual/gpu.',
  );
  const add = (
    name: string,
    description: string,
    schema: Schema,
    serve: (flags: Record<string, unknown>) => Promise<number>,
  ) => {
    const command = program.command(name).description(description);
    for (const flag of flagsOf(schema)) command.addOption(flag);
    command.action((flags: Record<string, unknown>) => {
      ended = serve(flags);
    });
  };
  const environment = process.env;
  add('extender', 'serve the extender of kube-scheduler', EXTENDER_OPTIONS, (flags) => {
    const options = loadOptions(EXTENDER_OPTIONS, { flags, environment });
    return run(options.logLevel, endSignal, (logger) => ExtenderService.start(options, logger));
  });
  add('webhook', 'serve the admission webhook for the API server', WEBHOOK_OPTIONS, (flags) => {
    const options = loadOptions(WEBHOOK_OPTIONS, { flags, environment });
    return run(options.logLevel, endSignal, (logger) => WebhookService.start(options, logger));
  });
  try {
    await program.parseAsync(argv);
    return await ended;
  } catch (error) {
    if (error instanceof ProxyError) return fail(error, error.exitStatus);
    if (error instanceof SchedulerError || error instanceof ApiError) return fail(error, 1);
    throw error;
  }
}

async function run(
  level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal',
  endSignal: EndSignal,
  start: (logger: Logger) => Promise<Service>,
): Promise<number> {
  const { logger } = new Log({ file: '-', level });
  const service = await start(logger);
  logger.info({ signal: await endSignal.first() }, 'ending');
  await service.end();
  return 0;
}

function fail({ message }: Error, status: number): number {
  process.stderr.write(`nvidia-virtual-scheduler-ext: ${message}\n`);
  return status;
}
