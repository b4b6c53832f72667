import { readdirSync, readFileSync } from 'node:fs';

/** Properties of this container. Tests replace them. */
export interface Container {
  readonly environment: NodeJS.ProcessEnv;
  /** Text of /proc/self/mountinfo */
  mounts(): string;
  /** Names in /dev */
  devices(): readonly string[];
  /** A privileged container has every device of the host anyway. */
  readonly privileged: boolean;
}

const CAP_SYS_ADMIN = 1n << 21n;

const THIS_CONTAINER: Container = {
  environment: process.env,
  mounts: () => readFileSync('/proc/self/mountinfo', 'utf8'),
  devices: () => readdirSync('/dev'),
  get privileged() {
    const [, effective = '0'] =
      /^CapEff:\s*([\da-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    return (BigInt(`0x${effective}`) & CAP_SYS_ADMIN) !== 0n;
  },
};

/** Files that NVIDIA's runtime mounts into a container in any of its modes. */
const INJECTED = new RegExp(
  '^(/proc/driver/nvidia(/.*)?|/dev/nvidia.*|' +
    '.*/(nvidia-smi|libcuda\\.so[.\\d]*|libnvidia-[\\w-]+\\.so[.\\d]*))$',
);

/**
 * Detects a default runtime that gives GPUs to any pod that sets NVIDIA_VISIBLE_DEVICES. The
 * configuration of container runtimes differs and changes, so the effect is tested: the container
 * of the device plugin sets the variable and checks whether it got a GPU.
 * @returns the injected file; undefined if there is none, or if the variable is not set
 */
export function whatDefaultRuntimeGives({
  environment,
  mounts,
  devices,
  privileged,
}: Container = THIS_CONTAINER): string | undefined {
  if (/^(|void|none)$/.test(environment['NVIDIA_VISIBLE_DEVICES'] ?? '')) return undefined;
  const points = mounts()
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '');
  const mounted = points.find((point) => INJECTED.test(point));
  const device = privileged ? undefined : devices().find((name) => /^nvidia(ctl|\d+)$/.test(name));
  return mounted ?? (device && `/dev/${device}`);
}
