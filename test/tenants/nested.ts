import type { Case } from './scene.js';
import { charged, look } from './shares.js';

/** A round of neighbour.cu: it waits for an event, launches, and records the event. */
const CALLS_PER_LAUNCH = 3;
/** Launches at the edges of the look: 16 are in flight, and counters are read one after another. */
const UNCERTAIN = 40;
const KERNEL_NS = 1e6;

export const nested: Case = {
  name: 'nested',
  about: 'kernels that are launched by kernels run in windows of GPU time, and are charged',
  async play(scene) {
    const loads = ['nested', 'saturate'] as const;
    const wishes = loads.map((load) => ({ sharePercent: 50, load }));
    const { times, calls } = await look(scene, wishes);
    for (const [i, load] of loads.entries()) {
      const launches = (calls[i] as number) / CALLS_PER_LAUNCH;
      const time = charged(times.slice(i, i + 1));
      const least = (launches - UNCERTAIN) * KERNEL_NS;
      console.log(`${load}: ${launches.toFixed(0)} ms of work, ${(time / 1e6).toFixed(0)} charged`);
      const problems = time >= least ? [] : [`${time} of at least ${least} ns were charged`];
      if (launches <= 2 * UNCERTAIN) problems.push(`it launched only ${launches} kernels`);
      scene.tally.judge(`the time of kernels: ${load}`, problems);
    }
  },
};
