import { CUDA } from '../images.js';
import type { TenantObject } from './tenants.js';

interface TenantOptions {
  /**
   * What `tenant` is told to do: `work`, `look`, `fill 4096`. Default: to work until it is told to
   * end.
   */
  readonly does?: string;
  /** Default: 1. */
  readonly slots?: number;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Beyond that, into the pod's specification. */
  readonly spec?: object;
}

export const RESOURCE = 'nvidia-virtual/gpu';
/** In the image of the programs. */
const TENANT = '/opt/programs/tenant';

/** A pod that runs a CUDA program with so many slots. */
export function tenantPod(name: string, options: TenantOptions = {}): TenantObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: metadata(name, options),
    spec: { restartPolicy: 'Never', ...podSpec(options) },
  };
}

export function tenantDeployment(
  name: string,
  replicas: number,
  options: TenantOptions = {},
): TenantObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: { metadata: metadata(undefined, options, name), spec: podSpec(options) },
    },
  };
}

export function tenantJob(
  name: string,
  completions: number,
  parallelism: number,
  options: TenantOptions = {},
): TenantObject {
  const spec = { restartPolicy: 'Never', ...podSpec(options) };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name },
    // A pod that fails once has failed the test.
    spec: {
      completions,
      parallelism,
      backoffLimit: 0,
      template: { metadata: metadata(undefined, options, name), spec },
    },
  };
}

/**
 * A pod that asks for no GPU. @param host directories and files of the node, by where the container
 * has them
 */
export function ordinaryPod(
  name: string,
  command: readonly string[],
  host: Readonly<Record<string, string>> = {},
): TenantObject {
  const mounts = Object.entries(host).map(([mountPath, path], index) => ({
    name: `host-${index}`,
    mountPath,
    path,
  }));
  const volumes = mounts.map((mount) => ({ name: mount.name, hostPath: { path: mount.path } }));
  const volumeMounts = mounts.map((mount) => ({ name: mount.name, mountPath: mount.mountPath }));
  const container = { name: 'main', image: CUDA, imagePullPolicy: 'Never', command, volumeMounts };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { restartPolicy: 'Never', ...QUICK, containers: [container], volumes },
  };
}

/** A program that is told to end does so at once, and nobody waits for one that does not. */
const QUICK = { terminationGracePeriodSeconds: 5 };

function metadata(
  name: string | undefined,
  { annotations = {} }: TenantOptions,
  app = name,
): object {
  return { ...(name ? { name } : {}), labels: { app }, annotations };
}

function podSpec({ does = 'work', slots = 1, spec = {} }: TenantOptions): object {
  return { ...QUICK, containers: [tenantContainer('main', slots, does)], ...spec };
}

/** A container for a pod that has several. @param command instead of the tenant's program */
export function tenantContainer(
  name: string,
  slots: number,
  does: string,
  command: readonly string[] = [TENANT, ...does.split(' ')],
): object {
  // What a program is told beyond CUDA's error is in its log then.
  const env = [{ name: 'CUDA_LOG_FILE', value: 'stderr' }];
  return {
    name,
    image: CUDA,
    imagePullPolicy: 'Never',
    command,
    env,
    resources: { limits: { [RESOURCE]: slots } },
  };
}
