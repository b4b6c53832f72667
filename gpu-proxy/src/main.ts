import { execute } from './command-line.js';

// Whoever reads what is printed may have enough: `gpu-proxy top | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});
process.exitCode = await execute(process.argv);
