import type { V1Pod } from '@kubernetes/client-node';
import { ANNOTATION } from './names.js';

/** The resources of one slot on every node of the cluster. */
export interface SlotSize {
  /** Bytes of GPU memory. */
  readonly memory: number;
  /** Percent of a GPU's time that a container may ask for with one slot. */
  readonly cores: number;
}

/** kubectl's annotation: the default container of commands that name none. */
const MAIN_ANNOTATION = 'kubectl.kubernetes.io/default-container';

/** Slots for memory and time on each of several GPUs. */
export function slotsFor(
  { memory = 0, cores = 0 }: Readonly<Record<'memory' | 'cores', number | undefined>>,
  gpus: number,
  size: SlotSize,
): number {
  return gpus * Math.max(1, Math.ceil(memory / size.memory), Math.ceil(cores / size.cores));
}

/**
 * The containers without slots that ask for some by the memory annotation: those that it names. If
 * it names none, and no container requests slots, the only container or kubectl's default.
 * @param containers the containers of the pod in start order
 * @returns undefined if the annotation names none of several containers
 */
export function askingByMemory(
  { metadata, spec }: V1Pod,
  containers: readonly { readonly container: string; readonly slots: number }[],
): readonly string[] | undefined {
  const text = metadata?.annotations?.[ANNOTATION.memory];
  if (text === undefined) return [];
  const named = new Set(
    text
      .split(',')
      .flatMap((part) => (part.includes('=') ? (part.split('=', 1)[0] ?? '').trim() : [])),
  );
  const without = containers.filter(({ slots }) => slots === 0);
  const asking = without.map(({ container }) => container).filter((name) => named.has(name));
  if (asking.length > 0 || named.size > 0 || without.length < containers.length) return asking;
  const names = spec?.containers.map(({ name }) => name) ?? [];
  const main = names.length === 1 ? names[0] : metadata?.annotations?.[MAIN_ANNOTATION];
  return main !== undefined && names.includes(main) ? [main] : undefined;
}
