import { EndSignal } from '@nvidia-virtual/service/end-signal';

// A hook that was cut short must not pass for done: a signal ends it with its own exit status.
new EndSignal();
const { execute } = await import('./command-line.js');
process.exitCode = await execute(process.argv);
