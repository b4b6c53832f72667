import { type Container, whatDefaultRuntimeGives } from './default-runtime.js';

const PLAIN = [
  '1 0 0:30 / / rw - overlay overlay rw',
  '2 1 0:31 / /proc rw - proc proc rw',
  '3 1 0:32 / /dev rw - tmpfs tmpfs rw',
  '4 1 8:1 /var/lib/nvidia-virtual /var/lib/nvidia-virtual rw - ext4 /dev/sda1 rw',
  '5 1 8:1 /var/lib/kubelet/device-plugins /var/lib/kubelet/device-plugins rw - ext4 /dev/sda1 rw',
];

function container({
  asks = 'all',
  mounted = '',
  devices = [] as string[],
  privileged = false,
}): Container {
  const mount = mounted && `9 1 8:1 /x ${mounted} ro - ext4 /dev/sda1 ro`;
  return {
    environment: { NVIDIA_VISIBLE_DEVICES: asks },
    mounts: () => [...PLAIN, mount].join('\n'),
    devices: () => ['null', 'zero', 'shm', ...devices],
    privileged,
  };
}

test('an ordinary runtime adds nothing to a container', () => {
  expect(whatDefaultRuntimeGives(container({}))).toBeUndefined();
});

test.each([
  '/proc/driver/nvidia',
  '/proc/driver/nvidia/gpus/0000:00:04.0',
  '/dev/nvidia0',
  '/dev/nvidia-uvm',
  '/usr/bin/nvidia-smi',
  '/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.03',
  '/usr/lib64/libnvidia-ml.so.580.159.03',
])("the mount %s identifies NVIDIA's runtime", (mounted) => {
  expect(whatDefaultRuntimeGives(container({ mounted }))).toBe(mounted);
  expect(whatDefaultRuntimeGives(container({ mounted, privileged: true }))).toBe(mounted);
});

test("a device node identifies NVIDIA's runtime, but not in a privileged container", () => {
  expect(whatDefaultRuntimeGives(container({ devices: ['nvidiactl'] }))).toBe('/dev/nvidiactl');
  expect(
    whatDefaultRuntimeGives(container({ devices: ['nvidia3'], privileged: true })),
  ).toBeUndefined();
});

test('a container that requests no GPU is not checked', () => {
  for (const asks of ['', 'void', 'none'])
    expect(whatDefaultRuntimeGives(container({ asks, devices: ['nvidia0'] }))).toBeUndefined();
});

test('the container of this test can be checked', () => {
  expect(() => whatDefaultRuntimeGives()).not.toThrow();
});
