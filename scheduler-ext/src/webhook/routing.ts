import type { V1Pod } from '@kubernetes/client-node';
import { ANNOTATION, RESOURCE, SCHEDULER_NAME } from '@nvidia-virtual/kube-common/names';
import {
  containersOf,
  PodRequestError,
  readPodRequest,
} from '@nvidia-virtual/kube-common/pod-request';
import type { SlotSize } from '@nvidia-virtual/kube-common/slot-size';
import type { PatchOperation } from './review.js';

const DEFAULT_SCHEDULER = 'default-scheduler';
/** Defaults of annotations. Written to the pod, so that later defaults do not affect it. */
const DEFAULTS = { [ANNOTATION.gpus]: '1', [ANNOTATION.mode]: 'exclusive' };

/**
 * Assigns our scheduler to a pod that requests slots, unless the pod names another scheduler or a
 * node. Adds the slots of containers that ask for memory.
 * @param slotSize undefined: a slot is another amount of memory on each GPU, so none are added
 */
export function routePod(pod: V1Pod, slotSize: SlotSize | undefined): PatchOperation[] {
  const missing = missingSlots(pod, slotSize);
  if (missing.size === 0 && !containersOf(pod).some(({ slots }) => slots > 0)) return [];
  return [...addSlots(pod, missing), ...routing(pod), ...defaults(pod)];
}

/**
 * The slots of containers that ask for memory and request none, by name. Empty for an invalid
 * request, which validation refuses.
 */
export function missingSlots(
  pod: V1Pod,
  slotSize: SlotSize | undefined,
): ReadonlyMap<string, number> {
  try {
    const requested = new Map(containersOf(pod).map(({ container, slots }) => [container, slots]));
    const asking = readPodRequest(pod, slotSize)?.containers ?? [];
    return new Map(
      asking.flatMap(({ container, slots }) =>
        requested.get(container) === 0 ? [[container, slots]] : [],
      ),
    );
  } catch (error) {
    if (error instanceof PodRequestError) return new Map();
    throw error;
  }
}

/** The API server makes requests equal to limits. */
function addSlots({ spec }: V1Pod, missing: ReadonlyMap<string, number>): PatchOperation[] {
  const lists = { initContainers: spec?.initContainers, containers: spec?.containers };
  return Object.entries(lists).flatMap(([list, containers = []]) =>
    containers.flatMap(({ name, resources }, index): PatchOperation[] => {
      const slots = missing.get(name);
      if (slots === undefined) return [];
      const limits = { ...resources?.limits, [RESOURCE]: String(slots) };
      const path = `/spec/${list}/${index}/resources`;
      return [{ op: 'add', path, value: { ...resources, limits } }];
    }),
  );
}

function routing({ spec }: V1Pod): PatchOperation[] {
  const { schedulerName = DEFAULT_SCHEDULER, nodeName } = spec ?? {};
  if (schedulerName !== DEFAULT_SCHEDULER || nodeName) return [];
  return [{ op: 'add', path: '/spec/schedulerName', value: SCHEDULER_NAME }];
}

function defaults({ metadata }: V1Pod): PatchOperation[] {
  const given = metadata?.annotations;
  const missing = Object.entries(DEFAULTS).filter(
    ([annotation]) => given?.[annotation] === undefined,
  );
  if (missing.length === 0) return [];
  if (given === undefined)
    return [{ op: 'add', path: '/metadata/annotations', value: Object.fromEntries(missing) }];
  return missing.map(([annotation, value]) => ({
    op: 'add',
    path: `/metadata/annotations/${annotation.replace('/', '~1')}`,
    value,
  }));
}
