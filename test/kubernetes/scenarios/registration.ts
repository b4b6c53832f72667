import { statSync } from 'node:fs';
import path from 'node:path';
import { lookUntil, until } from '../../processes.js';
import { KUBELET_ROOT } from '../cluster/places.js';
import { nodeLog } from './node-log.js';

const SOCKET = path.join(KUBELET_ROOT, 'device-plugins', 'kubelet.sock');

/**
 * Milliseconds from the moment when a new kubelet could accept requests to the registration of the
 * device plugin.
 */
export async function untilRegistered(before: number): Promise<number> {
  if (!(await until(() => socketBirth() > before)))
    throw new Error('the kubelet serves no device plugins');
  const isNew = (time: number) => time >= socketBirth();
  if (!isNew(await lookUntil(lastRegistration, isNew, { everyMs: 20 })))
    throw new Error(`the device plugin did not register: ${nodeLog('device-plugin').join('\n')}`);
  return lastRegistration() - socketBirth();
}

function socketBirth(): number {
  return statSync(SOCKET, { throwIfNoEntry: false })?.ctimeMs ?? 0;
}

/** Time in the plugin's log. */
function lastRegistration(): number {
  const times = nodeLog('device-plugin').flatMap(
    (line) => /"time":"([^"]+)".*"msg":"registered"/.exec(line)?.[1] ?? [],
  );
  return Math.max(0, ...times.map((time) => Date.parse(time)));
}
