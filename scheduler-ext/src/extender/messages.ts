import type { V1Pod } from '@kubernetes/client-node';

/** What kube-scheduler and its extenders say to each other. The names are those of its Go structs. */
export interface ExtenderArgs {
  readonly Pod: V1Pod;
  /** What a scheduler sends that is told `nodeCacheCapable: true`. */
  readonly NodeNames?: readonly string[] | null;
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
