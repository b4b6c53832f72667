import { EndSignal } from '@nvidia-virtual/service/end-signal';

const endSignal = new EndSignal();
const { execute } = await import('./command-line.js');
process.exitCode = await execute(process.argv, endSignal);
