import type { Device } from './protocol.js';
import { devicesOf, type SlottedGpu, type SlotUser, slotIds } from './slots.js';

const gpu = (number: number, unhealthy = ''): SlottedGpu => ({
  uuid: `GPU-0000000${number}-0000-0000-0000-000000000000`,
  slots: 4,
  unhealthy,
});
const NONE = new Set<string>();
const devices = (
  gpus: readonly SlottedGpu[],
  users: readonly SlotUser[],
  former: ReadonlySet<string>,
  leaving: readonly SlottedGpu[] = [],
) => devicesOf({ gpus, leaving, users }, former);

const unhealthyOf = (all: readonly Device[]) =>
  all.filter(({ health }) => health === 'Unhealthy').map(({ ID }) => ID);
const slot = (number: number, index: number) => slotIds(gpu(number))[index] as string;

test('slotIds() are stable, opaque, and short enough for the kubelet', () => {
  expect(
    slotIds({ uuid: 'GPU-6a8b3c55-8a0b-4f4e-9a0c-2f6d6c1d9b10', slots: 2, unhealthy: '' }),
  ).toEqual(['c90db53afa7a4244-00', 'c90db53afa7a4244-01']);
  const hundred = slotIds({ ...gpu(1), slots: 100 });
  expect(new Set(hundred).size).toBe(100);
  expect(hundred.at(-1)).toMatch(/^[0-9a-f]{16}-99$/);
});

test('every slot is listed, healthy or not', () => {
  expect(devices([gpu(1), gpu(2, 'fell off the bus')], [], NONE)).toHaveLength(8);
  expect(unhealthyOf(devices([gpu(1), gpu(2)], [], NONE))).toEqual([]);
});

test('as many slots are unhealthy as the failed GPU has, free ones of any GPU first', () => {
  const users = [
    { slots: [slot(2, 0), slot(2, 1)], gpus: [gpu(1).uuid] },
    { slots: [slot(2, 2)], gpus: [] },
  ];
  const unhealthy = unhealthyOf(devices([gpu(1), gpu(2, 'failed')], users, NONE));
  expect(unhealthy).toEqual([0, 1, 2, 3].map((index) => slot(1, index)));
});

test('if too few slots are free, those of containers on the failed GPU follow', () => {
  const on = (number: number) => ({
    slots: [0, 1, 2].map((index) => slot(number, index)),
    gpus: [gpu(number).uuid],
  });
  const unhealthy = unhealthyOf(devices([gpu(1), gpu(2, 'failed')], [on(1), on(2)], NONE));
  expect(new Set(unhealthy)).toEqual(new Set([slot(1, 3), slot(2, 3), slot(2, 0), slot(2, 1)]));
});

test('an unhealthy slot stays unhealthy until another slot becomes free', () => {
  const gpus = [gpu(1), gpu(2, 'failed')];
  const former = new Set([slot(1, 3), slot(2, 0), slot(2, 1), slot(2, 3)]);
  expect(new Set(unhealthyOf(devices(gpus, [], former)))).toEqual(former);
  const busy = [{ slots: [slot(2, 0)], gpus: [gpu(2).uuid] }];
  const unhealthy = unhealthyOf(devices(gpus, busy, former));
  expect(unhealthy).toHaveLength(4);
  expect(unhealthy).not.toContain(slot(2, 0));
});

test('a GPU that recovers returns as many slots', () => {
  const former = new Set([0, 1, 2, 3].map((index) => slot(1, index)));
  expect(unhealthyOf(devices([gpu(1), gpu(2)], [], former))).toEqual([]);
  expect(unhealthyOf(devices([gpu(1, 'failed'), gpu(2, 'failed')], [], former))).toHaveLength(8);
});

describe('a GPU that is being removed', () => {
  const slotsOf = (number: number, count: number) => slotIds(gpu(number)).slice(0, count);
  const listed = (...users: SlotUser[]) => {
    const all = devices([gpu(1)], users, NONE, [gpu(2)]);
    return { ids: all.map(({ ID }) => ID), unhealthy: unhealthyOf(all) };
  };

  test('its free slots are no longer listed', () => {
    expect(listed()).toEqual({ ids: slotsOf(1, 4), unhealthy: [] });
  });

  test('slots of containers that run on it stay allocated, and reduce no other GPU', () => {
    const ids = [...slotsOf(1, 4), ...slotsOf(2, 3)];
    expect(listed({ slots: slotsOf(2, 3), gpus: [gpu(2).uuid] })).toEqual({ ids, unhealthy: [] });
  });

  test('its slots in use on another GPU stay, and as many free ones are unhealthy', () => {
    const ids = [...slotsOf(1, 4), ...slotsOf(2, 3)];
    expect(listed({ slots: slotsOf(2, 3), gpus: [gpu(1).uuid] })).toEqual({
      ids,
      unhealthy: slotsOf(1, 3),
    });
    expect(listed({ slots: slotsOf(2, 2), gpus: [gpu(1).uuid, gpu(2).uuid] })).toMatchObject({
      unhealthy: slotsOf(1, 1),
    });
  });

  test('slots of other GPUs whose containers run on it stay allocated', () => {
    expect(listed({ slots: slotsOf(1, 2), gpus: [gpu(2).uuid] })).toEqual({
      ids: slotsOf(1, 4),
      unhealthy: [],
    });
  });
});
