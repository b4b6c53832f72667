import { destination, type Logger, pino } from 'pino';

/** JSON lines to a file (appended), to standard output for `-`, or nowhere. Written at once, so that nothing is lost at an exit. */
export function openLog(target: string | undefined): Logger {
  const options = { base: null, timestamp: () => `,"time":"${new Date().toISOString()}"` };
  if (target === undefined) return pino({ ...options, enabled: false });
  return pino(options, destination({ dest: target === '-' ? 1 : target, sync: true, append: true, mkdir: false }));
}
