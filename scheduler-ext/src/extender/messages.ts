import type { V1Pod } from '@kubernetes/client-node';
import { parseObject } from '../json-service.js';

/**
 * Messages between kube-scheduler and its extenders, with the names of its Go structs.
 */
export interface ExtenderArgs {
  readonly Pod: V1Pod;
  /** Sent because the configuration has `nodeCacheCapable: true`. */
  readonly NodeNames?: readonly string[] | null;
}

/** Characters of a DNS subdomain, to which Kubernetes restricts the names of nodes. */
const NODE_NAME = /^[-.a-z0-9]{1,253}$/;

/** @throws Error if the request is malformed */
export function readExtenderArgs(body: Buffer): ExtenderArgs {
  const args = parseObject<ExtenderArgs>(body);
  if (!isNodeNames(args.NodeNames ?? [])) throw new Error('its NodeNames are not names of nodes');
  return args;
}

function isNodeNames(names: unknown): boolean {
  return (
    Array.isArray(names) && names.every((name) => typeof name === 'string' && NODE_NAME.test(name))
  );
}

export interface FilterResult {
  readonly NodeNames?: readonly string[];
  readonly FailedNodes?: Readonly<Record<string, string>>;
  /** Nodes on which preemption would not help. */
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
