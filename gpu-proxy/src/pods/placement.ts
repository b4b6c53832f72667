import { GpuChoice } from '@nvidia-virtual/kube-common/gpu-choice';
import type { GpuRecord, Policy } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { GpuWish, Granted } from '../allocations/admission.js';
import type { GrantRequest } from './container-request.js';
import { type SlotSettings, slotsOf } from './slots.js';

/** The state of the node at a placement decision. */
interface NodeView extends SlotSettings {
  readonly gpus: readonly GpuRecord[];
  /** Number of free slots of a GPU. */
  free(gpu: GpuRecord): number;
  /** The reason why a GPU is unhealthy; undefined: it is healthy. */
  unhealthy(gpu: GpuRecord): string | undefined;
  /** @throws ProxyError with the figures if it does not fit */
  admit(wish: GpuWish): Granted;
}

/** GPUs, memory and share of a new allocation. */
interface Shape {
  readonly gpus: readonly string[];
  readonly memory: number;
  readonly share: number;
  readonly policy: Policy | undefined;
}

/**
 * Chooses the GPUs of a container: those that our scheduler assigned, otherwise the fullest GPUs
 * with enough room. n slots on k GPUs grant n/k slots' part of each GPU. The pod's request can only
 * reduce it.
 * @throws ProxyError ASSIGNED_GPU_GONE, ASSIGNED_GPU_UNHEALTHY, NO_SINGLE_GPU, NO_GPUS_TOGETHER, or
 * the error of admit()
 */
export function place(request: GrantRequest, node: NodeView): Shape {
  const gpus = request.assigned ? assigned(request, node) : choose(request, node);
  const shape = shapeOn(gpus, request, node);
  node.admit(wishOf(gpus, shape, request));
  return shape;
}

function assigned({ assigned: places = [], container }: GrantRequest, node: NodeView): GpuRecord[] {
  return places.map(({ gpu: uuid }) => {
    const gpu = node.gpus.find((one) => one.uuid.toLowerCase() === uuid.toLowerCase());
    if (!gpu)
      throw new ProxyError('ASSIGNED_GPU_GONE', {
        container,
        gpu: uuid,
        gpus: node.gpus.map((one) => one.uuid).join(', ') || 'none',
      });
    const reason = node.unhealthy(gpu);
    if (reason !== undefined)
      throw new ProxyError('ASSIGNED_GPU_UNHEALTHY', { container, gpu: uuid, reason });
    return gpu;
  });
}

/** Best fit: large free blocks stay in one piece. */
function choose(request: GrantRequest, node: NodeView): GpuRecord[] {
  const each = request.slots / request.gpus;
  const suitable = node.gpus.filter(
    (gpu) => node.free(gpu) >= each && suits(gpu, request) && node.unhealthy(gpu) === undefined,
  );
  const fitting = suitable
    .sort((a, b) => node.free(a) - node.free(b))
    .filter((gpu) => fits(gpu, request, node));
  if (fitting.length >= request.gpus) return fitting.slice(0, request.gpus);
  const told =
    node.gpus
      .map((gpu) => `GPU ${gpu.index} (${gpu.name}) ${whyNot(gpu, request, node)}`)
      .join('; ') || 'there is no GPU';
  const values = {
    container: request.container,
    slots: request.slots,
    gpus: request.gpus,
    each,
    told,
  };
  throw new ProxyError(request.gpus === 1 ? 'NO_SINGLE_GPU' : 'NO_GPUS_TOGETHER', values);
}

function suits({ name, uuid, mode }: GpuRecord, request: GrantRequest): boolean {
  const choice = new GpuChoice(request);
  const isChosen = choice.isNamed(uuid.toLowerCase()) && choice.isType(name.toLowerCase());
  return isChosen && mode === (request.mode ?? 'exclusive');
}

function fits(gpu: GpuRecord, request: GrantRequest, node: NodeView): boolean {
  try {
    node.admit(wishOf([gpu], shapeOn([gpu], request, node), request));
    return true;
  } catch (error) {
    if (error instanceof ProxyError) return false;
    throw error;
  }
}

function whyNot(gpu: GpuRecord, request: GrantRequest, node: NodeView): string {
  const unhealthy = node.unhealthy(gpu);
  if (unhealthy !== undefined) return `is unhealthy: ${unhealthy}`;
  if (!suits(gpu, request)) return 'is not of the type, the UUID or the mode that the pod asks for';
  return `has ${node.free(gpu)} of its ${slotsOf(gpu, node).count} slots free`;
}

function shapeOn(gpus: readonly GpuRecord[], request: GrantRequest, node: NodeView): Shape {
  const each = request.slots / request.gpus;
  const slots = gpus.map((gpu) => slotsOf(gpu, node));
  const memory = Math.min(...slots.map((slot) => Math.floor(each * slot.memory)));
  const part = Math.min(
    ...slots.map(({ count }, index) => {
      const taken = request.cores === undefined ? each : (request.assigned?.[index]?.taken ?? each);
      return Math.floor((taken * 100) / count);
    }),
  );
  const share = Math.min(100, Math.max(1, part));
  return {
    gpus: gpus.map(({ uuid }) => uuid),
    memory: Math.min(memory, request.memory ?? memory),
    share: Math.min(share, request.cores ?? share),
    policy: request.policy,
  };
}

function wishOf(
  gpus: readonly GpuRecord[],
  { memory, share, policy = 'burst' }: Shape,
  { mode = 'exclusive' }: GrantRequest,
): GpuWish {
  return { gpus: gpus.map(({ uuid }) => uuid), memory, share, policy, mode };
}
