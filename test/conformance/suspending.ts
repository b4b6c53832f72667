import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  BUILT_WORKERS,
  makeBuildWithoutWorker,
} from '@nvidia-virtual/gpu-proxy/testing/other-worker';

interface Suspensions {
  readonly times: number;
  /** That left the GPU, over all times. */
  readonly bytes: number;
}

/**
 * A copy of the build with a worker that suspends its session before each frame
 * (native/worker/test/suspending_control.cpp). Sessions of one program count together.
 */
export class SuspendingBuild {
  readonly directory: string;
  readonly #counts: string;

  constructor(directory: string) {
    this.directory = directory;
    const workers = makeBuildWithoutWorker(directory);
    this.#counts = path.join(workers, 'suspensions');
    copyFileSync(
      path.join(BUILT_WORKERS, 'test', 'suspending_worker'),
      path.join(workers, 'nvidia-virtual-worker'),
    );
    writeFileSync(this.#counts, Buffer.alloc(16), { mode: 0o666 });
  }

  get suspensions(): Suspensions {
    const counts = readFileSync(this.#counts);
    return { times: Number(counts.readBigUInt64LE(0)), bytes: Number(counts.readBigUInt64LE(8)) };
  }
}
