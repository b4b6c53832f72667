import { EndSignal } from '@nvidia-virtual/gpu-proxy/end-signal';

const endSignal = new EndSignal();
const { execute } = await import('./command-line.js');
process.exitCode = await execute(process.argv, endSignal);
