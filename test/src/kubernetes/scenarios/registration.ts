import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { until } from '../../processes.js';
import { KUBELET_ROOT, POD_LOGS } from '../cluster/places.js';

const SOCKET = path.join(KUBELET_ROOT, 'device-plugins', 'kubelet.sock');
const PATIENCE_MS = 60_000;

/** Milliseconds from the moment when a kubelet that was just started could be asked to the one when the device plugin was registered with it. */
export async function untilRegistered(before: number): Promise<number> {
  if (!(await until(() => socketBirth() > before, PATIENCE_MS))) throw new Error('the kubelet serves no device plugins');
  if (!(await until(() => lastRegistration() >= socketBirth(), PATIENCE_MS)))
    throw new Error(`the device plugin did not register: ${pluginLog()}`);
  return lastRegistration() - socketBirth();
}

function socketBirth(): number {
  return statSync(SOCKET, { throwIfNoEntry: false })?.ctimeMs ?? 0;
}

/** As the plugin's log says. */
function lastRegistration(): number {
  const times = [...pluginLog().matchAll(/"time":"([^"]+)"[^\n]*"msg":"registered"/g)].map((match) => Date.parse(match[1] as string));
  return Math.max(0, ...times);
}

function pluginLog(): string {
  const files = readdirSync(POD_LOGS, { recursive: true }) as string[];
  const logs = files.filter((file) => /^nvidia-virtual_nvidia-virtual-node-[^/]+\/device-plugin\/\d+\.log$/.test(file));
  return logs.map((file) => readFileSync(path.join(POD_LOGS, file), 'utf8')).join('');
}
