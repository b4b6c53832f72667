import type { V1Container, V1Pod, V1ResourceRequirements } from '@kubernetes/client-node';
import { ANNOTATION, RESOURCE } from '@nvidia-virtual/kube-common/names';
import { readQuantity } from '@nvidia-virtual/kube-common/quantity';
import type { SlotSize } from '@nvidia-virtual/kube-common/slot-size';
import { sentence } from '../errors.js';

/**
 * Requests of other products that become ours. `hami`: HAMi's resources for a part of a GPU.
 * `nvidia`: also `nvidia.com/gpu` alone, which is whole GPUs.
 */
export type Dialect = 'hami' | 'nvidia';

export interface TranslationOptions {
  readonly dialects: readonly Dialect[];
  /** Undefined: a GPU has `slotsPerGpu` equal slots. */
  readonly slotSize: SlotSize | undefined;
  readonly slotsPerGpu: number;
}

interface Translated {
  /** The pod itself if there is nothing to translate. */
  readonly pod: V1Pod;
  /** Sentences; then the pod is refused, because no node would ever offer what it requests. */
  readonly problems: readonly string[];
}

/** Names of HAMi's resources and annotations, from its documentation (version 2.6). */
const GPUS = 'nvidia.com/gpu';
const MEMORY = 'nvidia.com/gpumem';
const MEMORY_PERCENT = 'nvidia.com/gpumem-percentage';
const CORES = 'nvidia.com/gpucores';
const OTHERS = [GPUS, MEMORY, MEMORY_PERCENT, CORES];
const [USE_TYPE, NO_TYPE] = ['nvidia.com/use-gputype', 'nvidia.com/nouse-gputype'];
const [USE_UUID, NO_UUID] = ['nvidia.com/use-gpuuuid', 'nvidia.com/nouse-gpuuuid'];
const PLACEMENT = 'hami.io/gpu-scheduler-policy';
const SCHEDULER = 'hami-scheduler';
const RUNTIME_CLASS = 'nvidia';

/** A request of a container for resources of another product. */
interface Foreign {
  readonly container: string;
  readonly gpus: number;
  /** MiB on each GPU. */
  readonly memory: number | undefined;
  /** Percent of each GPU's memory. */
  readonly memoryPercent: number | undefined;
  /** Percent of each GPU's time. */
  readonly cores: number | undefined;
}

/** The same request for our resources. Slots are undefined if they follow from the memory. */
interface Ours {
  readonly container: string;
  readonly slots: number | undefined;
  readonly gpus: number;
  /** MiB on each GPU. */
  readonly memory: number | undefined;
  readonly cores: number | undefined;
}

/** The resources whose requests make a pod one that is translated. */
export function translatedResources(dialects: readonly Dialect[]): readonly string[] {
  if (dialects.length === 0) return [];
  const parts = [MEMORY, MEMORY_PERCENT, CORES];
  return dialects.includes('nvidia') ? [...parts, GPUS] : parts;
}

/** Translates a pod that requests a GPU by the resources of another product. */
export function translate(pod: V1Pod, options: TranslationOptions): Translated {
  const foreign = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].flatMap(
    (container) => foreignOf(container, options.dialects) ?? [],
  );
  if (foreign.length === 0) return { pod, problems: [] };
  const problems: string[] = [];
  const ours = foreign.flatMap((request) => translateOne(request, options, problems) ?? []);
  return problems.length > 0 ? { pod, problems } : { pod: write(pod, ours), problems: [] };
}

function foreignOf(
  { name, resources }: V1Container,
  dialects: readonly Dialect[],
): Foreign | undefined {
  const requested = { ...resources?.requests, ...resources?.limits };
  // A zero asks for nothing.
  const value = (resource: string) => readQuantity(requested[resource] ?? '') || undefined;
  const [memory, memoryPercent, cores] = [value(MEMORY), value(MEMORY_PERCENT), value(CORES)];
  const gpus = value(GPUS);
  // A request for our own resource has precedence.
  if (value(RESOURCE) !== undefined) return undefined;
  if (!translatedResources(dialects).some((resource) => value(resource) !== undefined))
    return undefined;
  return { container: name, gpus: gpus ?? 1, memory, memoryPercent, cores };
}

function translateOne(
  { container, gpus, memory, memoryPercent, cores }: Foreign,
  { slotSize, slotsPerGpu }: TranslationOptions,
  problems: string[],
): Ours | undefined {
  if (slotSize) {
    if (memory !== undefined) return { container, slots: undefined, gpus, memory, cores };
    problems.push(sentence('TRANSLATION_NEEDS_MEMORY', { container, resource: MEMORY }));
    return undefined;
  }
  if (memory !== undefined && cores === undefined) {
    problems.push(sentence('TRANSLATION_NEEDS_SLOT_MEMORY', { container, resource: MEMORY }));
    return undefined;
  }
  const whole = memory === undefined && memoryPercent === undefined ? 100 : 0;
  const percent = Math.min(100, Math.max(memoryPercent ?? whole, cores ?? 0));
  const each = Math.max(1, Math.ceil((percent * slotsPerGpu) / 100));
  return { container, slots: each * gpus, gpus, memory, cores };
}

function write(pod: V1Pod, ours: readonly Ours[]): V1Pod {
  const { spec, metadata } = pod;
  const slots = new Map(ours.map((one) => [one.container, one.slots]));
  const rewrite = (containers: V1Container[]) =>
    containers.map((one) =>
      slots.has(one.name)
        ? { ...one, resources: resourcesOf(one.resources ?? {}, slots.get(one.name)) }
        : one,
    );
  const { runtimeClassName, schedulerName, ...rest } = spec ?? { containers: [] };
  const initContainers = rest.initContainers && { initContainers: rewrite(rest.initContainers) };
  return {
    ...pod,
    metadata: { ...metadata, annotations: annotationsOf(metadata?.annotations ?? {}, ours) },
    spec: {
      ...rest,
      // With NVIDIA's runtime, a pod can see every GPU of the node.
      ...(runtimeClassName !== RUNTIME_CLASS && runtimeClassName && { runtimeClassName }),
      ...(schedulerName !== SCHEDULER && schedulerName && { schedulerName }),
      ...initContainers,
      containers: rewrite(rest.containers),
    },
  };
}

function resourcesOf(
  { limits = {}, requests = {}, ...rest }: V1ResourceRequirements,
  slots: number | undefined,
): V1ResourceRequirements {
  const without = (list: Record<string, string>) =>
    Object.fromEntries(Object.entries(list).filter(([name]) => !OTHERS.includes(name)));
  const added = slots === undefined ? {} : { [RESOURCE]: String(slots) };
  return { ...rest, requests: without(requests), limits: { ...without(limits), ...added } };
}

function annotationsOf(
  given: Readonly<Record<string, string>>,
  ours: readonly Ours[],
): Record<string, string> {
  const perContainer = (value: (one: Ours) => number | undefined, unit = '') =>
    ours.flatMap((one) => {
      const number = value(one);
      return number === undefined ? [] : `${one.container}=${number}${unit}`;
    });
  const entries = (name: string, prefix = '') =>
    (given[name] ?? '').split(',').flatMap((part) => (part.trim() ? prefix + part.trim() : []));
  const added = {
    [ANNOTATION.memory]: perContainer(({ memory }) => memory, 'Mi'),
    [ANNOTATION.cores]: perContainer(({ cores }) => cores),
    [ANNOTATION.gpus]: perContainer(({ gpus }) => (gpus === 1 ? undefined : gpus)),
    [ANNOTATION.gpuType]: [...entries(USE_TYPE), ...entries(NO_TYPE, '!')],
    [ANNOTATION.gpuUuid]: [...entries(USE_UUID), ...entries(NO_UUID, '!')],
    [ANNOTATION.placement]: entries(PLACEMENT),
  };
  const written = Object.entries(added).flatMap(([name, values]) =>
    values.length === 0 ? [] : [[name, [...entries(name), ...values].join(',')]],
  );
  return { ...given, ...Object.fromEntries(written) };
}
