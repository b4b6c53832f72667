import { readFileSync } from 'node:fs';

/** The pod and container of a process, read from its cgroup, which it cannot leave by itself. */
export interface ContainerIdentity {
  readonly podUid: string;
  /** Undefined for a process of the pod outside of its containers. */
  readonly containerId: string | undefined;
}

/**
 * `pod<UID>` of the cgroupfs driver, or `...-pod<UID>.slice` of systemd's, where dashes are
 * underscores. A static pod's UID has none at all.
 */
const POD = /(?:^|-)pod([0-9a-f]{8}([-_]?)(?:[0-9a-f]{4}\2){3}[0-9a-f]{12})(?:\.slice)?(?=$|:)/;
/**
 * `<id>`, `cri-containerd-<id>.scope`, `crio-<id>.scope`, `docker-<id>.scope`, and containerd's
 * `<slice>:cri-containerd:<id>`.
 */
const CONTAINER = /(?:^|[-:])([0-9a-f]{64})(?:\.scope)?$/;

/**
 * Parses /proc/PID/cgroup, version 1 or 2. Returns the pod and container of the process; undefined
 * if it is in no pod.
 * @param init the same file of the node's init process
 */
export function parseCgroup(text: string, init = ''): ContainerIdentity | undefined {
  const inits = new Map(membershipsIn(init));
  const found = membershipsIn(text).map(([hierarchy, path]) =>
    identify(path, inits.get(hierarchy) ?? []),
  );
  return (
    found.find((identity) => identity?.containerId !== undefined) ??
    found.find((identity) => identity !== undefined)
  );
}

/** @throws a system error if the process does not exist */
export function readCgroup(pid: number): ContainerIdentity | undefined {
  return parseCgroup(
    readFileSync(`/proc/${pid}/cgroup`, 'utf8'),
    readFileSync('/proc/1/cgroup', 'utf8'),
  );
}

type Membership = readonly [hierarchy: string, path: readonly string[]];

function membershipsIn(text: string): Membership[] {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const [, hierarchy = '', ...path] = line.split(':');
    return [hierarchy, path.join(':').split('/')];
  });
}

/**
 * Uses the outermost pod, and in it the outermost container: a container can create cgroups of any
 * name beneath its own, but cannot change those above. The common prefix with the node's init
 * process is skipped: if the node is itself a container of another cluster, the prefix names a pod
 * of that cluster.
 */
function identify(path: readonly string[], init: readonly string[]): ContainerIdentity | undefined {
  const own = path.findIndex((name, index) => name !== init[index]);
  const names = own < 0 ? [] : path.slice(own);
  const pod = names.findIndex((name) => POD.test(name));
  const uid = POD.exec(names[pod] ?? '')?.[1];
  if (uid === undefined) return undefined;
  const containerId = names.slice(pod).flatMap((name) => CONTAINER.exec(name)?.[1] ?? [])[0];
  return { podUid: uid.replaceAll('_', '-'), containerId };
}
