import { CUDA } from '../images.js';
import type { TenantObject } from './tenants.js';

interface TenantOptions {
  /** Argument of `tenant`: `work`, `look`, `fill 4096`. Default: works until it is terminated. */
  readonly does?: string;
  /** Default: 1. 0: it requests none by its limits. */
  readonly slots?: number;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Additions to the pod's specification. */
  readonly spec?: object;
}

export const RESOURCE = 'nvidia-virtual/gpu';
/** Path in the image of the programs. */
const TENANT = '/opt/programs/tenant';

/** A pod that runs a CUDA program with this many slots. */
export function tenantPod(name: string, options: TenantOptions = {}): TenantObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: metadata(name, options),
    spec: { restartPolicy: 'Never', ...podSpec(options) },
  };
}

/** User of a pod without any right. */
export const UNPRIVILEGED = 65_532;

/** As the Pod Security Standard "restricted" wants it, and with a root file system to read only. */
export function restrictedPod(name: string, does: string): TenantObject {
  const container = {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    readOnlyRootFilesystem: true,
  };
  const pod = {
    runAsNonRoot: true,
    runAsUser: UNPRIVILEGED,
    runAsGroup: UNPRIVILEGED,
    seccompProfile: { type: 'RuntimeDefault' },
  };
  const containers = [{ ...tenantContainer('main', 1, does), securityContext: container }];
  return tenantPod(name, { spec: { securityContext: pod, containers } });
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
 * A pod that requests no GPU. @param host directories and files of the node, by their paths in the
 * container
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

/** The programs end at once when terminated, and a program that does not is not waited for. */
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
  // The log then has more than CUDA's error.
  const env = [{ name: 'CUDA_LOG_FILE', value: 'stderr' }];
  return {
    name,
    image: CUDA,
    imagePullPolicy: 'Never',
    command,
    env,
    ...(slots > 0 && { resources: { limits: { [RESOURCE]: slots } } }),
  };
}
