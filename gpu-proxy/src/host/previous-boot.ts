import { existsSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { HOLDER, sessionDirectories } from '@nvidia-virtual/node-state/paths';
import { readIfThere, writeFileAtomically } from '@nvidia-virtual/service/files';

/** The paths of a StateDirectory. */
interface State {
  readonly directory: string;
  readonly allocations: string;
  readonly arenas: string;
}

/**
 * Removes sessions of a previous boot, the record of their arenas, and allocations with a holder.
 * After a reboot their pids and start times can belong to other processes. Other allocations and
 * grants stay: the kubelet gives them to the same containers again.
 */
export function removeSessionsOfPreviousBoot(state: State, bootId: string): void {
  const file = path.join(state.directory, 'boot');
  const former = readIfThere(file);
  if (former === bootId) return;
  if (former !== undefined) {
    rmSync(state.arenas, { force: true });
    for (const name of readdirSync(state.allocations))
      forgetProcesses(path.join(state.allocations, name));
  }
  writeFileAtomically(file, bootId);
}

function forgetProcesses(allocation: string): void {
  if (existsSync(path.join(allocation, HOLDER))) {
    rmSync(allocation, { recursive: true, force: true });
    return;
  }
  for (const session of sessionDirectories(allocation))
    rmSync(session, { recursive: true, force: true });
}
