import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  BUILT_WORKERS,
  makeBuildWithoutWorker,
} from '@nvidia-virtual/gpu-proxy/testing/other-worker';

interface Suspensions {
  readonly times: number;
  /** To the other GPU. */
  readonly moves: number;
  /** That left the GPU, over all times. */
  readonly bytes: number;
  /** Why the last session that failed did; empty: none did. */
  readonly failure: string;
}

/** Record of suspending_control.cpp: three words, and the text to the end. */
const RECORD_BYTES = 256;

/** The first two simulated GPUs. */
const [HERE, THERE] = [0, 1].map((index) => `GPU-73696d75-6c61-4064-a970-75000000000${index}`);

/** Starts a worker whose session may move. A query for the driver has no figures. */
const MOVING = `#!/bin/sh
case " $* " in *" --figures "*) set -- "$@" --gpu ${HERE} --other-place ${THERE};; esac
exec "$(dirname "$0")/suspending-worker" "$@"
`;

/**
 * A copy of the build with a worker that suspends its session before each frame
 * (native/worker/test/suspending_control.cpp). Sessions of one program count together.
 */
export class SuspendingBuild {
  readonly directory: string;
  readonly #record: string;

  /** @param moves whether sessions move between two simulated GPUs */
  constructor(directory: string, moves: boolean) {
    this.directory = directory;
    const workers = makeBuildWithoutWorker(directory);
    this.#record = path.join(workers, 'suspensions');
    const worker = path.join(workers, 'nvidia-virtual-worker');
    copyFileSync(
      path.join(BUILT_WORKERS, 'test', 'suspending_worker'),
      moves ? path.join(workers, 'suspending-worker') : worker,
    );
    if (moves) writeFileSync(worker, MOVING, { mode: 0o755 });
    writeFileSync(this.#record, Buffer.alloc(RECORD_BYTES), { mode: 0o666 });
  }

  get suspensions(): Suspensions {
    const record = readFileSync(this.#record);
    const [times = 0, bytes = 0, moves = 0] = [0, 8, 16].map((at) =>
      Number(record.readBigUInt64LE(at)),
    );
    return { times, bytes, moves, failure: record.toString('utf8', 24).replace(/\0.*$/, '') };
  }
}
