import { EventEmitter } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import type { Device } from './protocol.js';
import { devicesOf, type SlottedGpu, type SlotUser } from './slots.js';

/** The slots as the kubelet is told of them. `changed` comes only when they did. */
export class SlotList extends EventEmitter<{ changed: [] }> {
  #gpus: readonly SlottedGpu[] = [];
  #users: readonly SlotUser[] = [];
  #devices: readonly Device[] = [];
  /** gpu-proxy serves nobody: not one slot is of use. */
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

  update({ gpus = this.#gpus, users = this.#users, closed = this.#closed }): void {
    this.#gpus = gpus;
    this.#users = users;
    this.#closed = closed;
    const all = closed ? gpus.map((gpu) => ({ ...gpu, unhealthy: 'gpu-proxy is away' })) : gpus;
    const former = new Set(this.#devices.filter(({ health }) => health === 'Unhealthy').map(({ ID }) => ID));
    const devices = devicesOf(all, users, former);
    if (isDeepStrictEqual(devices, this.#devices)) return;
    this.#devices = devices;
    this.emit('changed');
  }
}
