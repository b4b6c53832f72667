import { Command, CommanderError, Option } from 'commander';
import type { CreateOptions, OutputOption, StateOption } from './admin/commands.js';
import { ProxyError } from './errors.js';
import {
  backendOptions,
  chosenGpuOption,
  countOption,
  gpuOption,
  memoryOption,
  outputOption,
  shareOptions,
  stateOption,
  warmWorkersOption,
} from './options.js';
import { type RunOptions, run } from './run.js';
import { type ServeOptions, serve } from './serve.js';

const USAGE_ERROR = 2;
const OWN_FAILURE = 125;

const EXIT_STATUS_HELP = `
The exit status is the program's own, or 128 + the number of the signal that ended it.
gpu-proxy itself fails with 2 (wrong usage), 125 (it cannot serve), 126 (the program cannot be executed) or 127 (it was not found).`;

const SERVE_HELP = `
A node keeps its allocations in the state directory. When it ends, by a signal or by accident, programs go on, and the next one finds them.
With --socket it serves one allocation over that socket instead, and keeps nothing: the first SIGTERM or SIGINT refuses new programs and
waits for the running ones; a second one ends them.`;

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
type CarryOut = (outcome: Outcome) => Promise<void>;
type AdminCommands = typeof import('./admin/commands.js');

function commandLine(carryOut: CarryOut): Command {
  const program = new Command('gpu-proxy')
    .description('Runs unmodified CUDA programs on a part of a GPU, or on a simulated one.')
    .enablePositionalOptions()
    .exitOverride();
  addRun(program, carryOut);
  addServe(program, carryOut);
  addAdminCommands(program, (command) => carryOut(async () => command(await import('./admin/commands.js'))));
  return program;
}

function addRun(program: Command, carryOut: CarryOut): void {
  const command = program
    .command('run')
    .description('run one program (and the processes that it starts) on a virtual GPU')
    .usage('[options] -- PROGRAM [ARGS...]')
    .argument('<program>', 'what to run')
    .argument('[args...]', 'its arguments, passed on as they are')
    .passThroughOptions()
    .addOption(new Option('--socket <path>', 'use the gpu-proxy that serves this socket, instead of an embedded one'))
    .addOption(stateOption('an allocation of the gpu-proxy that serves this directory, for the length of the run'))
    .addOption(new Option('--allocation <id|name>', 'that allocation of the gpu-proxy that serves the state directory'))
    .option('--verbose', 'say at the end where the program ran, its quota and what it used')
    .addHelpText('after', EXIT_STATUS_HELP)
    .action((name: string, args: string[], options: RunOptions) => carryOut((say) => run([name, ...args], options, say)));
  addOptions(command, [...backendOptions(), gpuOption('all; with --state the node chooses one')]);
  addOptions(command, [memoryOption('the whole GPU; with --state all that is left'), ...shareOptions()]);
}

function addServe(program: Command, carryOut: CarryOut): void {
  const command = program
    .command('serve')
    .description('own the GPUs of this machine: allocations are made, seen and removed by the other commands')
    .addOption(stateOption('where allocations are kept; it outlives this process, but not a boot'))
    .addOption(new Option('--socket <path>', 'serve one allocation over this socket, for `gpu-proxy run --socket PATH`'))
    .addHelpText('after', SERVE_HELP)
    .action((options: ServeOptions) => carryOut(() => serve(options)));
  addOptions(command, [...backendOptions(), gpuOption('all'), warmWorkersOption(), memoryOption('with --socket, the whole GPU')]);
}

function addAdminCommands(program: Command, carryOut: (command: (commands: AdminCommands) => Promise<number>) => Promise<void>): void {
  const screen = process.stdout;
  const add = (usage: string, description: string, ...options: Option[]) =>
    addOptions(program.command(usage).description(description), [stateOption(), ...options]);

  add('create', 'make an allocation, and print its id and its socket', outputOption(), chosenGpuOption(), memoryOption('all that is left'))
    .addOption(new Option('--name <name>', 'what to call it'))
    .action((options: CreateOptions) => carryOut((commands) => commands.create(options, screen)))
    .addHelpText(
      'after',
      '\nA program uses it by `gpu-proxy run --allocation ID -- PROGRAM`, or with NVIDIA_VIRTUAL_SOCKET set to its socket.',
    );
  addOptions(program.commands.at(-1) as Command, shareOptions());

  add('ls', 'list GPUs and allocations', outputOption()).action((options: StateOption & OutputOption) =>
    carryOut((commands) => commands.list(options, screen)),
  );
  add('top', 'show what the allocations use, once a second', outputOption(), countOption('-n, --count', 'end after so many times')).action(
    (options: StateOption & OutputOption & { count?: number }) => carryOut((commands) => commands.top(options, screen)),
  );
  add('drain', 'let an allocation take no new programs, and delete it when its last one has ended')
    .argument('<id|name>', 'which allocation')
    .action((id: string, options: StateOption) => carryOut((commands) => commands.drain(id, options, screen)));
  add('delete', 'delete an allocation that no program uses')
    .argument('<id|name>', 'which allocation')
    .option('--force', 'end its programs: their next CUDA call returns an error')
    .action((id: string, options: StateOption & { force?: boolean }) => carryOut((commands) => commands.remove(id, options, screen)));
}

function addOptions(command: Command, options: readonly Option[]): Command {
  for (const option of options) command.addOption(option);
  return command;
}
