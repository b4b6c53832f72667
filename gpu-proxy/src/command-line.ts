import { flagsOf } from '@nvidia-virtual/service/configuration/flags';
import { loadFlags } from '@nvidia-virtual/service/configuration/load';
import type { Schema } from '@nvidia-virtual/service/configuration/option';
import { EndSignal } from '@nvidia-virtual/service/end-signal';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { Command, CommanderError } from 'commander';
import { CONFIGURATION_FILE, NODE_OPTIONS } from './configuration/schema.js';
import {
  CLIENT_OPTIONS,
  CREATE_OPTIONS,
  type Flags,
  LIST_OPTIONS,
  RUN_OPTIONS,
  SERVE_OPTIONS,
  TOP_OPTIONS,
} from './options.js';

const USAGE_ERROR = 2;
const OWN_FAILURE = 125;

const EXIT_STATUS_HELP = `
The exit status is the program's own, or 128 + the number of the signal that ended it.
gpu-proxy itself fails with 2 (wrong usage), 125 (it cannot serve), 126 (the program cannot be \
executed) or 127 (it was not found).`;

const SERVE_HELP = `
A node keeps its allocations in the state directory. When it ends, by a signal or by accident, \
programs go on, and the next one finds them.
Every option is also an environment variable and a key of the configuration file, which SIGHUP \
makes it read again: docs/configuration.md.
With --socket it serves one allocation over that socket instead, and keeps nothing: the first \
SIGTERM or SIGINT refuses new programs and
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
  addAdminCommands(program, (command) =>
    carryOut(async () => command(await import('./admin/commands.js'))),
  );
  return program;
}

function addRun(program: Command, carryOut: CarryOut): void {
  const command = program
    .command('run')
    .description('run one program (and the processes that it starts) on a virtual GPU')
    .usage('[options] -- PROGRAM [ARGS...]')
    .argument('<program>', 'the program')
    .argument('[args...]', 'its arguments')
    .passThroughOptions()
    .option('--verbose', 'print at the end where the program ran, its quota and its usage')
    .option('--summary', 'print a table of kernels, copies and driver calls when a process ends')
    .addHelpText('after', EXIT_STATUS_HELP)
    .action((name: string, args: string[], flags: Flags) =>
      carryOut(async (say) => (await import('./run/run.js')).run([name, ...args], flags, say)),
    );
  addOptions(command, RUN_OPTIONS);
}

function addServe(program: Command, carryOut: CarryOut): void {
  const command = program
    .command('serve')
    .description(
      'own the GPUs of this machine; the other commands create, show and remove allocations',
    )
    .addHelpText('after', SERVE_HELP)
    .action((flags: Flags) => {
      const endSignal = new EndSignal();
      return carryOut(async () => (await import('./serve.js')).serve(flags, endSignal));
    });
  for (const schema of [CONFIGURATION_FILE, NODE_OPTIONS, SERVE_OPTIONS])
    addOptions(command, schema);
}

function addAdminCommands(
  program: Command,
  carryOut: (command: (commands: AdminCommands) => Promise<number>) => Promise<void>,
): void {
  const screen = process.stdout;
  const add = (usage: string, description: string, options: Schema) =>
    addOptions(program.command(usage).description(description), options);

  add('create', 'create an allocation, and print its id and its socket', CREATE_OPTIONS)
    .action((flags: Flags) =>
      carryOut((commands) => commands.create(loadFlags(CREATE_OPTIONS, flags), screen)),
    )
    .addHelpText(
      'after',
      '\nA program uses it by `gpu-proxy run --allocation ID -- PROGRAM`, ' +
        'or with NVIDIA_VIRTUAL_SOCKET set to its socket.',
    );
  add('ls', 'list GPUs and allocations', LIST_OPTIONS).action((flags: Flags) =>
    carryOut((commands) => commands.list(loadFlags(LIST_OPTIONS, flags), screen)),
  );
  add('top', 'show what the allocations use, once a second', TOP_OPTIONS).action((flags: Flags) =>
    carryOut((commands) => commands.top(loadFlags(TOP_OPTIONS, flags), screen)),
  );
  for (const [name, description] of [
    ['drain', 'refuse new programs of an allocation, and delete it when its last one has ended'],
    ['suspend', 'take the GPU from the programs of an allocation: their next CUDA call waits'],
    ['resume', 'give the GPU back to the programs of a suspended allocation'],
  ] as const)
    add(name, description, CLIENT_OPTIONS)
      .argument('<id|name>', 'the allocation')
      .action((id: string, flags: Flags) =>
        carryOut((commands) => commands[name](id, loadFlags(CLIENT_OPTIONS, flags), screen)),
      );
  add('move', 'move the programs of an allocation to another GPU of the same model', CLIENT_OPTIONS)
    .argument('<id|name>', 'the allocation')
    .requiredOption('--gpu <index|uuid>', 'the GPU')
    .action((id: string, flags: Flags) =>
      carryOut((commands) =>
        commands.move(
          id,
          { ...loadFlags(CLIENT_OPTIONS, flags), gpu: String(flags['gpu']) },
          screen,
        ),
      ),
    );
  add(
    'checkpoint',
    'write the GPU side of the programs of an allocation to files; the programs live on and wait',
    CLIENT_OPTIONS,
  )
    .argument('<id|name>', 'the allocation')
    .argument('<directory>', 'a directory that does not exist')
    .option('--encrypt', 'do not keep the key on the node, but print it')
    .option('--key-file <path>', 'the same, and write the key to this new file')
    .action((id: string, directory: string, flags: Flags) =>
      carryOut((commands) =>
        commands.checkpoint(
          id,
          {
            ...loadFlags(CLIENT_OPTIONS, flags),
            directory,
            encrypt: flags['encrypt'] === true,
            keyFile: keyFileOf(flags),
          },
          screen,
        ),
      ),
    );
  add('restore', 'continue the programs of an allocation from its files', CLIENT_OPTIONS)
    .argument('<directory>', 'the directory')
    .option('--key-file <path>', 'a file with the key; -: standard input')
    .action((directory: string, flags: Flags) =>
      carryOut((commands) =>
        commands.restore(
          directory,
          { ...loadFlags(CLIENT_OPTIONS, flags), keyFile: keyFileOf(flags) },
          screen,
        ),
      ),
    );
  add('delete', 'delete an allocation that no program uses', CLIENT_OPTIONS)
    .argument('<id|name>', 'the allocation')
    .option('--force', 'end its programs: their next CUDA call returns an error')
    .action((id: string, flags: Flags) =>
      carryOut((commands) =>
        commands.remove(
          id,
          { ...loadFlags(CLIENT_OPTIONS, flags), force: flags['force'] === true },
          screen,
        ),
      ),
    );
}

function keyFileOf({ keyFile }: Flags): string | undefined {
  return keyFile === undefined ? undefined : String(keyFile);
}

function addOptions(command: Command, schema: Schema): Command {
  for (const flag of flagsOf(schema)) command.addOption(flag);
  return command;
}
