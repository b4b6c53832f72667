/** The GPUs of this machine, as one line of `nvidia-virtual-worker --processes --answers` says. */
export interface DeviceReading {
  /** NVML's answers to calls without a device: `STATUS HEX`, keyed by call. */
  readonly system: Answers;
  readonly gpus: readonly DeviceState[];
}

interface DeviceState {
  readonly uuid: string;
  /** Bytes. */
  readonly memory: number;
  /** NVML's answers about this GPU. */
  readonly constants: Answers;
  readonly readings: Answers;
  readonly processes: readonly {
    readonly pid: number;
    readonly memory: number;
    /** Microseconds in which its kernels ran since the previous line. */
    readonly busy: number;
  }[];
}

type Answers = Readonly<Record<string, string>>;

/** A session as its tenant's NVML shows it. */
interface ShownSession {
  readonly workerPid: number;
  /** The pid of the program in its own namespace. */
  readonly pid: number;
  /** Bytes charged to the quota. */
  readonly memory: number;
}

/** An allocation as its tenant's NVML shows it. */
export interface ShownAllocation {
  /** Indices or UUIDs; empty: all GPUs. */
  readonly gpus: readonly string[];
  /** UUID of the GPU as which its GPU appears; undefined: as itself. */
  readonly shownAs?: string | undefined;
  /** Bytes on each GPU; 0: all of it. */
  readonly memory: number;
  /** Bytes charged to the quota. */
  readonly used: number;
  readonly sessions: readonly ShownSession[];
}

const FIRST_LINE = 'nvidia-virtual-gpus 1';

/** The page before the first reading: NVML in the container waits. */
export const PENDING_PAGE = `${FIRST_LINE}\npending\n`;
/** The page while NVML is missing: there is no GPU to show. */
export const EMPTY_PAGE = `${FIRST_LINE}\n`;

/** @throws if the line is malformed */
export function parseDevices(line: string): DeviceReading {
  const reading = JSON.parse(line) as DeviceReading;
  if (!Array.isArray(reading.gpus) || typeof reading.system !== 'object')
    throw new Error(`the worker answered ${JSON.stringify(line.slice(0, 200))}`);
  return reading;
}

/**
 * The page of an allocation. nvml/page.h describes the format.
 * @param busyOf percent of the time in which kernels of a worker ran on a GPU
 */
export function makePage(
  { system, gpus }: DeviceReading,
  allocation: ShownAllocation,
  busyOf: (workerPid: number, gpu: string) => number,
): string {
  const shown = gpus.filter(
    ({ uuid }, index) =>
      allocation.gpus.length === 0 ||
      allocation.gpus.some((name) => name === String(index) || isSame(name, uuid)),
  );
  const lines = [
    FIRST_LINE,
    ...Object.entries(system).map(([call, answer]) => `system ${call} ${answer}`),
    ...shown.flatMap((gpu) =>
      linesOf(
        gpu,
        gpus.find(({ uuid }) => uuid === allocation.shownAs) ?? gpu,
        shown.length,
        allocation,
        busyOf,
      ),
    ),
  ];
  return `${lines.join('\n')}\n`;
}

/**
 * With several GPUs, the quota does not tell which one holds the memory, but the driver does.
 * @param face the GPU as which it appears
 */
function linesOf(
  { uuid, memory, readings, processes }: DeviceState,
  face: Pick<DeviceState, 'uuid' | 'constants'>,
  count: number,
  allocation: ShownAllocation,
  busyOf: (workerPid: number, gpu: string) => number,
): string[] {
  const held = (pid: number) => processes.find((process) => process.pid === pid)?.memory ?? 0;
  const sessions = allocation.sessions
    .map((session) => ({
      ...session,
      memory: count > 1 ? held(session.workerPid) : session.memory,
      busy: busyOf(session.workerPid, uuid),
    }))
    .filter((session) => count === 1 || session.memory > 0);
  const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);
  const used = count > 1 ? sum(sessions.map((session) => session.memory)) : allocation.used;
  const busy = Math.min(100, sum(sessions.map((session) => session.busy)));
  return [
    `gpu ${face.uuid}`,
    `memory ${allocation.memory || memory} ${used}`,
    `busy ${busy}`,
    ...sessions.map((session) => `process ${session.pid} ${session.memory} ${session.busy}`),
    ...Object.entries({ ...face.constants, ...readings }).map(
      ([call, answer]) => `answer ${call} ${answer}`,
    ),
  ];
}

function isSame(name: string, uuid: string): boolean {
  return name.toLowerCase() === uuid.toLowerCase();
}
