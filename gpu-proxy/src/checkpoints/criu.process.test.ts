import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { DIRECT, type Launcher } from '../host/launcher.js';
import { Criu } from './criu.js';

/** Fails with a log of 3 GiB. */
const CRIU = `
case "$*" in *check) exit 0;; esac
cd /proc/self/fd/3
echo '(00.1) 1: Error (criu/cr-dump.c:1): The first' > one.log
truncate -s 3G one.log
printf '\\n(00.2) 1: Error (criu/cr-dump.c:2): The last\\n' >> one.log
exit 1
`;

let directory: string;

beforeEach(() => {
  directory = makePrivateDirectory();
});
afterEach(() => removePrivateDirectory(directory));

test('of a long log, the end is read', async () => {
  const launcher: Launcher = {
    ...DIRECT,
    seen: () => directory,
    command: (_, args) => ['sh', ['-c', CRIU, 'criu', ...args]],
  };
  const criu = await Criu.find(launcher, '/worker', directory);
  const task = { name: 'one', directory, purpose: { writes: 1, uid: undefined } };
  await expect(criu.dump(1, task)).rejects.toThrow('The last');
});
