import type { V1Pod } from '@kubernetes/client-node';
import { readInventory } from '@nvidia-virtual/kube-common/assignment';
import { drainedGpus } from '@nvidia-virtual/kube-common/drained';
import {
  ANNOTATION,
  DRAINED_ANNOTATION,
  INVENTORY_ANNOTATION,
} from '@nvidia-virtual/kube-common/names';
import { PodRequestError, readPodRequest } from '@nvidia-virtual/kube-common/pod-request';
import type { SlotSize } from '@nvidia-virtual/kube-common/slot-size';
import { sentence } from '../errors.js';
import type { AdmissionRequest, Reviewed } from './review.js';
import { missingSlots } from './routing.js';

/** The only users who may write these annotations. Full user names. */
export interface Writers {
  /** Of `nvidia-virtual/assigned`. */
  readonly scheduler: string;
  /** Of `nvidia-virtual/inventory`, each for its own node. */
  readonly plugin: string;
}

/** The node on which the bearer of a service account's token runs. */
const TOKEN_NODE = 'authentication.kubernetes.io/node-name';
const { assigned: _, suspended: __, moveTo: ___, ...SHAPE } = ANNOTATION;
const SUSPENDED_VALUES = ['true', 'false', ''];
/** Format of a GPU's UUID. The driver writes `GPU-` and a UUID. */
const UUID = /^[A-Za-z]+-[A-Za-z0-9-]{1,64}$/;
/** Quoted characters of an invalid value. */
const MAXIMUM_QUOTED = 100;

/**
 * The problems of a request, one sentence each. Checks the request only, not the state of the
 * cluster.
 */
export function problemsOf(
  request: AdmissionRequest,
  writers: Writers,
  slotSize?: SlotSize,
): string[] {
  if (request.resource.resource === 'nodes')
    return [...inventoryProblems(request, writers), ...drainProblems(request)];
  const problems = assignmentProblems(request, writers);
  const isPod = request.resource.resource === 'pods' && request.subResource !== 'binding';
  if (!isPod) return problems;
  return [
    ...[...problems, ...suspensionProblems(request), ...moveProblems(request)],
    ...shapeProblems(request, slotSize),
  ];
}

/** Users may change it and the next one while the pod runs. */
function suspensionProblems({ object, oldObject }: AdmissionRequest): string[] {
  const value = object.metadata?.annotations?.[ANNOTATION.suspended] ?? '';
  if (SUSPENDED_VALUES.includes(value) || !changed(ANNOTATION.suspended, object, oldObject))
    return [];
  return [sentence('SUSPENDED_VALUE', { value: value.slice(0, MAXIMUM_QUOTED) })];
}

function moveProblems({ object, oldObject }: AdmissionRequest): string[] {
  const value = object.metadata?.annotations?.[ANNOTATION.moveTo] ?? '';
  if (value === '' || !changed(ANNOTATION.moveTo, object, oldObject)) return [];
  if (!UUID.test(value)) return [sentence('MOVE_VALUE', { value: value.slice(0, MAXIMUM_QUOTED) })];
  const isPlaced = oldObject?.metadata?.annotations?.[ANNOTATION.assigned] !== undefined;
  return isPlaced ? [] : [sentence('MOVE_UNPLACED')];
}

function assignmentProblems(
  { object, oldObject, userInfo }: AdmissionRequest,
  { scheduler }: Writers,
): string[] {
  const { username = '' } = userInfo;
  if (!changed(ANNOTATION.assigned, object, oldObject) || username === scheduler) return [];
  return [sentence('ASSIGNED_FORBIDDEN', { scheduler, user: username })];
}

function inventoryProblems(
  { object, oldObject, userInfo }: AdmissionRequest,
  { plugin }: Writers,
): string[] {
  if (!changed(INVENTORY_ANNOTATION, object, oldObject)) return [];
  const { username = '', extra = {} } = userInfo;
  const node = extra[TOKEN_NODE]?.[0] ?? object.metadata?.name;
  if (username === plugin && node === object.metadata?.name) return [];
  const user = username === plugin ? `that of node ${node}` : username;
  return [sentence('INVENTORY_FORBIDDEN', { plugin, user })];
}

/** A GPU that was drained may have left the node since. */
function drainProblems({ object, oldObject }: AdmissionRequest): string[] {
  const drained = (node?: Reviewed | null) =>
    drainedGpus(node?.metadata?.annotations?.[DRAINED_ANNOTATION]);
  const permitted = new Set([...drained(oldObject), ...gpusOf(object)]);
  const value = [...drained(object)].filter((gpu) => !permitted.has(gpu)).join(', ');
  if (value === '') return [];
  const node = object.metadata?.name ?? '';
  return [sentence('DRAINED_VALUE', { node, value: value.slice(0, MAXIMUM_QUOTED) })];
}

/** UUIDs of the GPUs of a node, in lower case. */
function gpusOf({ metadata }: Reviewed): string[] {
  try {
    const inventory = readInventory(metadata?.annotations?.[INVENTORY_ANNOTATION]);
    return (inventory?.gpus ?? []).map(({ uuid }) => uuid.toLowerCase());
  } catch {
    return [];
  }
}

function shapeProblems(
  { operation, object, oldObject }: AdmissionRequest,
  slotSize: SlotSize | undefined,
): string[] {
  if (operation === 'CREATE') return contradictionsOf(object, slotSize);
  const shapes = Object.values(SHAPE).filter((annotation) =>
    changed(annotation, object, oldObject),
  );
  if (shapes.length === 0) return [];
  const placed = !!(oldObject as V1Pod).spec?.nodeName;
  return placed
    ? shapes.map((annotation) => sentence('SHAPE_SETTLED', { annotation }))
    : contradictionsOf(object, slotSize);
}

function contradictionsOf(pod: V1Pod, slotSize: SlotSize | undefined): string[] {
  try {
    const request = readPodRequest(pod, slotSize);
    const asks = pod.metadata?.annotations?.[ANNOTATION.memory] !== undefined;
    // mutate() has added the slots of a new pod; to an existing one, none can be added.
    return asks && (request === undefined || missingSlots(pod, slotSize).size > 0)
      ? [sentence('MEMORY_WITHOUT_SLOTS')]
      : [];
  } catch (error) {
    if (!(error instanceof PodRequestError)) throw error;
    return [...error.problems];
  }
}

function changed(
  annotation: string,
  object: Reviewed,
  oldObject: Reviewed | null | undefined,
): boolean {
  return (
    (object.metadata?.annotations?.[annotation] ?? '') !==
    (oldObject?.metadata?.annotations?.[annotation] ?? '')
  );
}
