import { locateInstallation } from '../host/installation.js';
import { DIRECT } from '../host/launcher.js';
import { chooseBackend } from './backend.js';
import { listGpus, selectGpus, takeInventory } from './inventory.js';

const OF_ANOTHER_NODE = 'GPU-ffffffff-ffff-ffff-ffff-ffffffffffff';

const installation = locateInstallation();
const machine = { installation, backend: chooseBackend('simulated', installation) };

test('an unknown UUID does not hide the other GPUs', async () => {
  const [uuid = ''] = await listGpus(machine);
  const gpus = [OF_ANOTHER_NODE, uuid.replace(/[a-f]/g, (letter) => letter.toUpperCase())];
  expect(await takeInventory({ ...machine, gpus })).toEqual([expect.objectContaining({ uuid })]);
});

test('a selection without any existing GPU does not select all GPUs', async () => {
  await expect(takeInventory({ ...machine, gpus: [OF_ANOTHER_NODE] })).rejects.toMatchObject({
    code: 'INVENTORY_FAILED',
  });
});

/** Its driver lists three GPUs. */
const launcher = {
  ...DIRECT,
  command: (file: string, args: readonly string[]) =>
    ['env', ['NVIDIA_VIRTUAL_SIMULATED_GPUS=3', file, ...args]] as const,
};

test.each<[string, (uuids: readonly string[]) => string[], number[]]>([
  ['nothing in particular', () => [], [0, 1, 2]],
  ['indices, in their order', () => ['2', '0'], [2, 0]],
  [
    'UUIDs, in any spelling',
    ([, uuid = '']) => [OF_ANOTHER_NODE, uuid.replace(/[a-f]/g, (letter) => letter.toUpperCase())],
    [1],
  ],
  ['an index that there is not', () => ['1', '7', '0'], [1]],
  ['both', ([uuid = '']) => [uuid, '2'], [0, 2]],
])('the selected GPUs are those that the driver reports: %s', async (_, choose, expected) => {
  const uuids = await listGpus({ ...machine, launcher });
  const gpus = choose(uuids);
  const selected = selectGpus(uuids, gpus);
  expect(selected).toEqual(expected.map((index) => uuids[index]));
  expect((await takeInventory({ ...machine, launcher, gpus })).map(({ uuid }) => uuid)).toEqual(
    selected,
  );
});
