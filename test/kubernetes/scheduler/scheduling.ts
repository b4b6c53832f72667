import { ExtenderService } from '@nvidia-virtual/scheduler-ext/extender/extender-service';
import { schedulerConfiguration } from '@nvidia-virtual/scheduler-ext/testing/scheduler-configuration';
import { type Logger, pino } from 'pino';
import type { ControlPlane } from '../control-plane.js';

type Options = Parameters<typeof ExtenderService.start>[0];

/** An extender with a free port, packing. @param more options that differ */
export function startExtender(
  more: Pick<Options, 'kubeconfig'> & Partial<Options>,
  logger: Logger = pino({ level: 'silent' }),
): Promise<ExtenderService> {
  const options: Options = {
    listen: { host: '127.0.0.1', port: 0 },
    strategy: 'binpack',
    slotCores: undefined,
    http: undefined,
    logLevel: 'info',
    evictAfter: undefined,
    lease: undefined,
    ...more,
  };
  return ExtenderService.start(options, logger);
}

/** Starts kube-scheduler with the extender. `plane.stop()` ends it. */
export async function startScheduler(
  plane: ControlPlane,
  { port }: ExtenderService,
): Promise<void> {
  await plane.startScheduler(
    'kube-scheduler',
    schedulerConfiguration(`http://127.0.0.1:${port}`, 'binpack'),
  );
}
