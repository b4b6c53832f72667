import {
  ensurePrerequisites,
  type Host,
  type Prerequisite,
  TEST_PREREQUISITES,
} from './prerequisites.js';

let installed: string[];

function host(properties: Partial<Host>): Host {
  return {
    isRoot: true,
    isDebian: true,
    install: async (packages) => {
      installed.push(...packages);
      return true;
    },
    ...properties,
  };
}

/** A prerequisite that is present once its package is installed. */
function wanted(name: string): Prerequisite {
  return { name, packages: [name], present: async () => installed.includes(name) };
}

beforeEach(() => {
  installed = [];
});

test('nothing is installed when nothing is missing', async () => {
  installed = ['cmake'];
  await ensurePrerequisites([wanted('cmake')], host({}));
  expect(installed).toEqual(['cmake']);
});

test('only missing packages are installed, as root on Debian', async () => {
  installed = ['cmake'];
  await ensurePrerequisites([wanted('cmake'), wanted('ninja'), wanted('zstd')], host({}));
  expect(installed).toEqual(['cmake', 'ninja', 'zstd']);
});

test('another user gets the command to run', async () => {
  await expect(
    ensurePrerequisites([wanted('cmake'), wanted('ninja')], host({ isRoot: false })),
  ).rejects.toThrow(
    'Missing: cmake, ninja. Install them with\n\n  sudo apt-get install -y cmake ninja\n',
  );
  expect(installed).toEqual([]);
});

test('other systems are not changed', async () => {
  await expect(ensurePrerequisites([wanted('cmake')], host({ isDebian: false }))).rejects.toThrow(
    "with this system's package manager",
  );
});

test('an installation without effect is an error', async () => {
  await expect(
    ensurePrerequisites([wanted('cmake')], host({ install: async () => false })),
  ).rejects.toThrow('Still missing after apt-get install: cmake.');
  await expect(
    ensurePrerequisites([wanted('cmake')], host({ install: async () => true })),
  ).rejects.toThrow('Still missing');
});

test('no package that tests need starts a daemon', () => {
  expect(TEST_PREREQUISITES.flatMap((one) => one.packages)).toEqual(['redis-tools', 'openssl']);
});
