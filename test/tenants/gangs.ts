import type { Case } from './scene.js';
import { divided, type Wish } from './shares.js';

const BOTH = ['0', '1'];
/**
 * If the machine delays a thread between its two launches, the first kernel runs on into windows of
 * others.
 */
const POINTS = 5;

export const gangs: Case = {
  name: 'gangs',
  about:
    'jobs on two GPUs whose kernels wait for each other: ' +
    'each gets both at once, by its share, and none waits forever',
  environment: { NVIDIA_VIRTUAL_SIMULATED_GPUS: '2' },
  async play(scene) {
    const gang = (sharePercent: number): Wish => ({ sharePercent, gpus: BOTH, load: 'gang' });
    await divided(scene, [gang(50), gang(50)], { points: POINTS });
    await divided(scene, [gang(25), gang(75)], { points: POINTS });
  },
};
