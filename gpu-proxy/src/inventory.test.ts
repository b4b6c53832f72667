import { chooseBackend } from './backend.js';
import { locateInstallation } from './installation.js';
import { listGpus, takeInventory } from './inventory.js';

const OF_ANOTHER_NODE = 'GPU-ffffffff-ffff-ffff-ffff-ffffffffffff';

const installation = locateInstallation();
const machine = { installation, backend: chooseBackend('simulated', installation) };

test('a UUID that names no GPU here hides none of the others', async () => {
  const [uuid = ''] = await listGpus({ ...machine, gpus: [] });
  const gpus = [OF_ANOTHER_NODE, uuid.replace(/[a-f]/g, (letter) => letter.toUpperCase())];
  expect(await listGpus({ ...machine, gpus })).toEqual([uuid]);
  expect(await takeInventory({ ...machine, gpus })).toEqual([expect.objectContaining({ uuid })]);
});

test('a selection of which nothing is here is not taken for all', async () => {
  await expect(takeInventory({ ...machine, gpus: [OF_ANOTHER_NODE] })).rejects.toMatchObject({ code: 'INVENTORY_FAILED' });
});
