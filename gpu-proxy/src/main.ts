import { execute } from './command-line.js';

// The reader of a pipe may exit early: `gpu-proxy top | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});
process.exitCode = await execute(process.argv);
