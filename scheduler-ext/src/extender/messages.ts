import type { V1Pod } from '@kubernetes/client-node';
import { parseObject } from '../json-service.js';
import { NodeNames } from './node-names.js';

/** What kube-scheduler and its extenders say to each other. The names are those of its Go structs. */
export interface ExtenderArgs {
  readonly Pod: V1Pod;
  /** What a scheduler sends that is told `nodeCacheCapable: true`. */
  readonly NodeNames?: NodeNames | undefined;
}

const NAMES = '"NodeNames":[';

/** Strings are made of the pod only, since it is one, and the names are thousands. @throws Error for what is no such request; so may NodeNames.visit() */
export function readExtenderArgs(body: Buffer): ExtenderArgs {
  const key = body.lastIndexOf(NAMES);
  const list = key < 0 ? undefined : NodeNames.at(body, key + NAMES.length);
  if (!list) {
    const { Pod, NodeNames: names } = parseObject<{ Pod: V1Pod; NodeNames?: readonly string[] | null }>(body);
    return { Pod, NodeNames: names ? NodeNames.of(names) : undefined };
  }
  const rest = Buffer.concat([body.subarray(0, key), Buffer.from('"NodeNames":null'), body.subarray(list.end + 1)]);
  return { Pod: parseObject<{ Pod: V1Pod }>(rest).Pod, NodeNames: list.names };
}

export interface FilterResult {
  readonly NodeNames?: readonly string[];
  readonly FailedNodes?: Readonly<Record<string, string>>;
  /** Where preemption would not help either. */
  readonly FailedAndUnresolvableNodes?: Readonly<Record<string, string>>;
  readonly Error?: string;
}

export type PrioritizeResult = readonly { readonly Host: string; readonly Score: number }[];

export interface BindArgs {
  readonly PodName: string;
  readonly PodNamespace: string;
  readonly PodUID: string;
  readonly Node: string;
}

export interface BindResult {
  readonly Error?: string;
}

export interface MetaVictims {
  readonly Pods: readonly { readonly UID: string }[] | null;
  readonly NumPDBViolations: number;
}

export interface PreemptionArgs {
  readonly Pod: V1Pod;
  readonly NodeNameToMetaVictims?: Readonly<Record<string, MetaVictims>> | null;
}

export interface PreemptionResult {
  readonly NodeNameToMetaVictims: Readonly<Record<string, MetaVictims>>;
}
