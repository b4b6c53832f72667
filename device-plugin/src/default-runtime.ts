import { readdirSync, readFileSync } from 'node:fs';

/** What a container can see of itself; a test gives its own. */
export interface Container {
  readonly environment: NodeJS.ProcessEnv;
  /** Text of /proc/self/mountinfo */
  mounts(): string;
  /** Names in /dev */
  devices(): readonly string[];
  /** It has every device of the host in any case. */
  readonly privileged: boolean;
}

const CAP_SYS_ADMIN = 1n << 21n;

export const THIS_CONTAINER: Container = {
  environment: process.env,
  mounts: () => readFileSync('/proc/self/mountinfo', 'utf8'),
  devices: () => readdirSync('/dev'),
  get privileged() {
    const [, effective = '0'] = /^CapEff:\s*([\da-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    return (BigInt(`0x${effective}`) & CAP_SYS_ADMIN) !== 0n;
  },
};

/** What NVIDIA's runtime mounts into a container, whichever way it is set up to do it. */
const INJECTED = /^(\/proc\/driver\/nvidia(\/.*)?|\/dev\/nvidia.*|.*\/(nvidia-smi|libcuda\.so[.\d]*|libnvidia-[\w-]+\.so[.\d]*))$/;

/**
 * How configuration files, drop-ins and hooks of containerd, CRI-O, Docker and their children make the default runtime is theirs, and changes; what
 * it does is plain to see. So the container of the device plugin asks for all GPUs by the variable, as any pod could, and looks whether it got one.
 * @returns what came in unasked; undefined when nothing did, or when this container does not ask.
 */
export function whatDefaultRuntimeGives({ environment, mounts, devices, privileged }: Container = THIS_CONTAINER): string | undefined {
  if (/^(|void|none)$/.test(environment['NVIDIA_VISIBLE_DEVICES'] ?? '')) return undefined;
  const points = mounts()
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '');
  const mounted = points.find((point) => INJECTED.test(point));
  const device = privileged ? undefined : devices().find((name) => /^nvidia(ctl|\d+)$/.test(name));
  return mounted ?? (device && `/dev/${device}`);
}
