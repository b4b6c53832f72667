import { execute } from './command-line.js';

process.exitCode = await execute(process.argv);
