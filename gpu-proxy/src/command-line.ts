import { Command, CommanderError } from 'commander';
import { ProxyError } from './errors.js';
import { gpuOptions, socketOption } from './options.js';
import { type RunOptions, run } from './run.js';
import { type ServeOptions, serve } from './serve.js';

const USAGE_ERROR = 2;
const OWN_FAILURE = 125;

const EXIT_STATUS_HELP = `
The exit status is the program's own, or 128 + the number of the signal that ended it.
gpu-proxy itself fails with 2 (wrong usage), 125 (it cannot serve), 126 (the program cannot be executed) or 127 (it was not found).`;

/** Carries out one command line. Resolves to the exit status; never ends the process itself. */
export async function execute(argv: readonly string[]): Promise<number> {
  let status = 0;
  const say = (sentence: string) => process.stderr.write(`gpu-proxy: ${sentence}\n`);
  const program = commandLine(async (outcome) => {
    status = await outcome(say);
  });
  try {
    await program.parseAsync([...argv]);
    return status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_ERROR;
    say((error as Error).message);
    return error instanceof ProxyError ? error.exitStatus : OWN_FAILURE;
  }
}

type Outcome = (say: (sentence: string) => void) => Promise<number>;

function commandLine(carryOut: (outcome: Outcome) => Promise<void>): Command {
  const program = new Command('gpu-proxy')
    .description('Runs unmodified CUDA programs on a part of a GPU, or on a simulated one.')
    .enablePositionalOptions()
    .exitOverride();

  const runCommand = program
    .command('run')
    .description('run one program (and the processes that it starts) on a virtual GPU')
    .usage('[options] -- PROGRAM [ARGS...]')
    .argument('<program>', 'what to run')
    .argument('[args...]', 'its arguments, passed on as they are')
    .passThroughOptions()
    .addOption(socketOption('run'))
    .option('--verbose', 'say at the end where the program ran, its quota and what it used')
    .addHelpText('after', EXIT_STATUS_HELP)
    .action((name: string, args: string[], options: RunOptions) => carryOut((say) => run([name, ...args], options, say)));

  const serveCommand = program
    .command('serve')
    .description('serve a socket for programs started by `gpu-proxy run --socket PATH`, each in a worker of its own')
    .addOption(socketOption('serve'))
    .addHelpText('after', '\nThe first SIGTERM or SIGINT refuses new programs and waits for the running ones; a second one ends them.')
    .action((options: ServeOptions) => carryOut(() => serve(options)));

  for (const option of gpuOptions()) {
    runCommand.addOption(option);
    serveCommand.addOption(option);
  }
  return program;
}
