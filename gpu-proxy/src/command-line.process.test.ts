import { gpuProxy, Place } from './testing/command-under-test.js';

let place: Place;

beforeEach(() => {
  place = new Place();
});
afterEach(() => place.remove());

test.each([
  [['run', '--state', '/s', '--log', '-', '--', 'true'], '--log cannot be combined with --state'],
  [
    ['run', '--allocation', 'a', '--memory', '1MiB', '--', 'true'],
    '--memory cannot be combined with --allocation',
  ],
  [
    ['run', '--socket', '/s', '--share', '5', '--', 'true'],
    '--share cannot be combined with --socket',
  ],
  [['serve', '--socket', '/s', '--state', '/s'], '--state is an option of a node'],
  [['serve', '--socket', '/s', '--http', '/s'], '--http is an option of a node'],
  [['serve', '--memory', '1MiB'], '--memory requires --socket'],
  [['create', '--share', '0'], '--share is "0", but must be'],
])('%j is wrong usage', async (args, sentence) => {
  const { status, stderr } = await gpuProxy(place, ...args);
  expect([status, stderr]).toEqual([2, expect.stringContaining(sentence)]);
});

test.each([['create'], ['ls'], ['top'], ['drain'], ['delete']])(
  '--help explains %s',
  async (command) => {
    const { status, stdout } = await gpuProxy(place, command, '--help');
    expect([status, stdout]).toEqual([0, expect.stringContaining(`Usage: gpu-proxy ${command}`)]);
  },
);
