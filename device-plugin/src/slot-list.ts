import { EventEmitter } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import type { Device } from './protocol.js';
import { devicesOf, type SlotState } from './slots.js';

/** The slots reported to the kubelet. Emits `changed` only if they differ. */
export class SlotList extends EventEmitter<{ changed: [] }> {
  #state: SlotState = { gpus: [], leaving: [], users: [] };
  #devices: readonly Device[] = [];
  /** True while gpu-proxy is unavailable: all slots are unhealthy. */
  #closed = false;

  get devices(): readonly Device[] {
    return this.#devices;
  }

  has(id: string): boolean {
    return this.#devices.some(({ ID }) => ID === id);
  }

  count(health: Device['health']): number {
    return this.#devices.filter((device) => device.health === health).length;
  }

  update({
    closed = this.#closed,
    ...changed
  }: Partial<SlotState> & { readonly closed?: boolean }): void {
    this.#state = { ...this.#state, ...changed };
    this.#closed = closed;
    const former = new Set(
      this.#devices.filter(({ health }) => health === 'Unhealthy').map(({ ID }) => ID),
    );
    const open = devicesOf(this.#state, former);
    const devices = closed
      ? open.map((device) => ({ ...device, health: 'Unhealthy' as const }))
      : open;
    if (isDeepStrictEqual(devices, this.#devices)) return;
    this.#devices = devices;
    this.emit('changed');
  }
}
