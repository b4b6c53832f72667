import { readFileSync } from 'node:fs';

/** Whose a process is, as its cgroup says: no process can leave it by itself. */
export interface ContainerIdentity {
  readonly podUid: string;
  /** Undefined for a process of the pod that is in none of its containers. */
  readonly containerId: string | undefined;
}

/** `pod<UID>` of the cgroupfs driver, or `...-pod<UID>.slice` of systemd's, where dashes are underscores. A static pod's UID has none at all. */
const POD = /(?:^|-)pod([0-9a-f]{8}([-_]?)[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{12})(?:\.slice)?(?=$|:)/;
/** `<id>`, `cri-containerd-<id>.scope`, `crio-<id>.scope`, `docker-<id>.scope`, and containerd's `<slice>:cri-containerd:<id>`. */
const CONTAINER = /(?:^|[-:])([0-9a-f]{64})(?:\.scope)?$/;

/**
 * The pod and the container of a process, by the text of its /proc/PID/cgroup, of version 1 or 2; undefined when it is in no pod.
 * @param init that of the node's first process.
 */
export function parseCgroup(text: string, init = ''): ContainerIdentity | undefined {
  const inits = new Map(membershipsIn(init));
  const found = membershipsIn(text).map(([hierarchy, path]) => identify(path, inits.get(hierarchy) ?? []));
  return found.find((identity) => identity?.containerId !== undefined) ?? found.find((identity) => identity !== undefined);
}

/** @throws when there is no such process. */
export function readCgroup(pid: number): ContainerIdentity | undefined {
  return parseCgroup(readFileSync(`/proc/${pid}/cgroup`, 'utf8'), readFileSync('/proc/1/cgroup', 'utf8'));
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
 * The outermost pod counts, and in it the outermost container: a container that may make cgroups can give those beneath its own any name, and
 * cannot change what is above. What the path has in common with that of the node's first process does not count: it is in no pod of this node, so
 * that a pod it is in is that of a node which is a container of another cluster itself.
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
