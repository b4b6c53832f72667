/** Occurrences of an Xid on a GPU, as NVML reports them. */
export interface XidReport {
  /** UUID of the GPU. */
  readonly gpu: string;
  readonly xid: number;
  readonly count: number;
}

/**
 * The consequence of an Xid for its GPU:
 * - program: none. A program caused it, and only that program ended. Tenants can cause these.
 * - probe: a probe worker decides whether the GPU can be used.
 * - reset: the GPU cannot be used until it is reset, even if workers start on it.
 */
type XidConsequence = 'program' | 'probe' | 'reset';

interface XidFact {
  readonly meaning: string;
  readonly consequence: XidConsequence;
}

/** Facts: NVIDIA's catalog of Xids, https://docs.nvidia.com/deploy/xid-errors/. */
const XIDS: Readonly<Record<number, XidFact>> = {
  13: program('a program caused an exception in the compute engine'),
  31: program('a program used an address that is not mapped'),
  43: program('a program was stopped after its own error'),
  45: program('work was removed because its program ended or had an error before'),
  68: program('a program caused an exception in the video decoder'),
  69: program('a program sent a command that the engine does not know'),
  32: probe('commands arrived damaged at the GPU, which points to the PCIe link'),
  48: probe('ECC found a memory error that it cannot correct'),
  61: probe('the power management unit raised a warning'),
  62: probe('the power management unit halted'),
  63: probe('a damaged row of memory will be replaced at the next reset'),
  74: probe('an NVLink connection has errors'),
  92: probe('ECC corrects unusually many memory errors'),
  94: probe('a memory error ended the programs that used that memory, and no others'),
  109: probe('the GPU did not switch between programs in time'),
  119: probe('the system processor of the GPU (GSP) does not answer'),
  120: probe('the system processor of the GPU (GSP) failed'),
  154: probe('the driver recommends another action to repair the GPU'),
  64: reset('a damaged row of memory could not be replaced'),
  79: reset('the GPU fell off the PCIe bus'),
  95: reset('a memory error may have damaged the data of any program'),
  140: reset('ECC could not recover from a memory error'),
};

/** Numbers with a known meaning, in ascending order. */
export const KNOWN_XIDS: readonly number[] = Object.keys(XIDS).map(Number);

/** An unknown Xid never makes a usable GPU unhealthy, but it leads to a probe. */
export function xidFact(xid: number): XidFact {
  return XIDS[xid] ?? probe("its meaning is in NVIDIA's catalog of Xids");
}

/** Counts Xids by GPU. Known ones count from 0, so that Prometheus sees their first increase. */
export class XidCounts {
  readonly #counts = new Map<string, Map<number, number>>();

  add({ gpu, xid, count }: XidReport): void {
    const counts = this.of(gpu);
    counts.set(xid, (counts.get(xid) ?? 0) + count);
  }

  /** @param gpu its UUID */
  of(gpu: string): Map<number, number> {
    const known = this.#counts.get(gpu) ?? new Map(KNOWN_XIDS.map((xid) => [xid, 0]));
    this.#counts.set(gpu, known);
    return known;
  }
}

function program(meaning: string): XidFact {
  return { meaning, consequence: 'program' };
}

function probe(meaning: string): XidFact {
  return { meaning, consequence: 'probe' };
}

function reset(meaning: string): XidFact {
  return { meaning, consequence: 'reset' };
}

/** Parses a line of `nvidia-virtual-worker --processes --xids`. @throws if it is malformed */
export function parseXids(line: string): XidReport[] {
  const { gpus } = JSON.parse(line) as {
    gpus: { uuid: string; xids?: { xid: number; count: number }[] }[];
  };
  return gpus.flatMap(({ uuid, xids = [] }) =>
    xids.map(({ xid, count }) => ({ gpu: uuid, xid, count })),
  );
}
