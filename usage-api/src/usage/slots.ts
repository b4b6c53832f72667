import { assignmentOf, heldBy } from '@nvidia-virtual/kube-common/assignment';
import { type ContainerRequest, peak } from '@nvidia-virtual/kube-common/pod-request';
import type { NodeFigures } from './figures.js';
import type { GpuRequest } from './gpu-request.js';
import { allocationOf } from './ownership.js';
import type { GpuPod } from './pods.js';

/** Counts the slots that pods hold on a node, in total and per GPU if known. */
export class SlotMap {
  readonly #gpus = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  on(gpu: string): number {
    return this.#gpus.get(gpu) ?? 0;
  }

  add(pod: GpuPod, { containers }: GpuRequest, figures: NodeFigures | undefined): void {
    this.#total += peak(containers);
    const parts = containers.map(({ container, ...request }) => ({
      ...request,
      gpus: gpusOf(pod, container, request, figures),
    }));
    for (const gpu of new Set(parts.flatMap(({ gpus }) => [...gpus.keys()]))) {
      const here = parts.map(({ init, gpus }) => ({ init, slots: gpus.get(gpu) ?? 0 }));
      this.#gpus.set(gpu, this.on(gpu) + peak(here));
    }
  }
}

/** GPUs from the scheduler's assignment, or else from the allocation on the node. */
function gpusOf(
  pod: GpuPod,
  container: string,
  { slots }: Pick<ContainerRequest, 'slots'>,
  figures: NodeFigures | undefined,
): Map<string, number> {
  const assignment = assignmentOf(pod);
  if (assignment?.containers[container])
    return new Map(
      heldBy(assignment, container).map(({ gpu, slots: count, taken = count }) => [gpu, taken]),
    );
  const gpus = allocationOf(pod, container, figures)?.specification.gpus ?? [];
  return new Map(gpus.map((gpu) => [gpu, slots / gpus.length]));
}
