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

/** The pod and the container of a process, by the text of its /proc/PID/cgroup, of version 1 or 2; undefined when it is in no pod. */
export function parseCgroup(text: string): ContainerIdentity | undefined {
  const found = text.split('\n').map((line) => identify(line.split(':').slice(2).join(':')));
  return found.find((identity) => identity?.containerId !== undefined) ?? found.find((identity) => identity !== undefined);
}

/** @throws when there is no such process. */
export function readCgroup(pid: number): ContainerIdentity | undefined {
  return parseCgroup(readFileSync(`/proc/${pid}/cgroup`, 'utf8'));
}

/** The innermost pod counts: a node may itself be a container of another cluster. */
function identify(path: string): ContainerIdentity | undefined {
  const names = path.split('/');
  const pod = names.findLastIndex((name) => POD.test(name));
  const uid = POD.exec(names[pod] ?? '')?.[1];
  if (uid === undefined) return undefined;
  const containerId = names.slice(pod).flatMap((name) => CONTAINER.exec(name)?.[1] ?? [])[0];
  return { podUid: uid.replaceAll('_', '-'), containerId };
}
