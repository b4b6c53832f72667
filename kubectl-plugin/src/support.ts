import { plural } from '@nvidia-virtual/service/plural';
import { writeArchive } from './bundle/archive.js';
import { collectBundle } from './bundle/bundle.js';
import type { CommandLine } from './command-line.js';
import { ClusterReader } from './doctor/cluster-state.js';
import { diagnose } from './doctor/findings.js';
import { diagnosisLines } from './doctor/view.js';
import { PluginError } from './errors.js';
import { Kubectl } from './kubectl.js';
import type { Terminal } from './terminal.js';
import { VERSION } from './version.js';
import { objectText } from './view/objects.js';
import { painterFor } from './view/table.js';

/**
 * Runs `doctor` or `bundle`. @throws PluginError PROBLEMS_FOUND if the doctor found any; others
 */
export async function runSupport(line: CommandLine, terminal: Terminal): Promise<void> {
  const { request, flags, connection } = line;
  const { environment, err } = terminal;
  const say = (text: string) => err.write(text);
  const { requestTimeout } = flags;
  const reader = new ClusterReader(new Kubectl({ connection, environment, requestTimeout, say }));
  const state = await reader.read(flags.namespace);
  if (request.what === 'doctor') return showDiagnoses(diagnose(state), line, terminal);
  const { name: file = defaultFile() } = request;
  await writeArchive(file, await collectBundle({ reader, state, plugin: VERSION }));
  terminal.out.write(`${file}\n`);
}

function showDiagnoses(
  all: ReturnType<typeof diagnose>,
  { request: { name }, flags: { output } }: CommandLine,
  { out, environment }: Terminal,
): void {
  const chosen = name === undefined ? all : all.filter(({ subject }) => subject === `node ${name}`);
  if (chosen.length === 0 && name !== undefined) throw new PluginError('NO_SUCH_NODE', { name });
  out.write(
    output === 'json' || output === 'yaml'
      ? objectText(chosen, output)
      : `${diagnosisLines(chosen, painterFor(out, environment)).join('\n')}\n`,
  );
  const { length } = chosen.flatMap(({ problems }) => problems);
  if (length > 0)
    throw new PluginError('PROBLEMS_FOUND', {
      count: plural(length, 'problem'),
    });
}

function defaultFile(): string {
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return `nvidia-virtual-support-${time}.tar.gz`;
}
