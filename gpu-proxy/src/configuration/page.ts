import { type NamedOption, optionsOf } from './option.js';
import { ALLOCATION_OPTIONS, CONFIGURATION_FILE, NODE_OPTIONS } from './schema.js';

const INTRODUCTION = `# Configuration of gpu-proxy

Every option of \`gpu-proxy serve\` is a flag, an environment variable, and a key of the file that \`--config\` names, with three exceptions:
\`--config\` is no key, \`--socket\` has no variable, and \`--memory\`, which goes with \`--socket\`, is a flag only. A flag comes before the
environment, which comes before the file. What is wrong is refused at start, all of it at once, with the place where it stands and what is allowed.

\`\`\`yaml
# --config FILE
node: node-17
gpuMode: {0: exclusive, 1: concurrent}
warmWorkers: 2
limits:
  sessions: 32
ledger:
  url: rediss://redis.example:6380
  username: gpu-proxy
  passwordFile: /etc/nvidia-virtual/password
  tls:
    ca: /etc/nvidia-virtual/ca.pem
http: 127.0.0.1:9400
\`\`\`

- \`kill -HUP\` makes a running gpu-proxy read its file again. It follows changes of the options that say so, and its log names those that need
  a restart. A file that became wrong changes nothing, and its mistakes are in the log.
- Several values: repeat the flag, put commas into the variable, write a list in the file. Where a value is for each GPU, \`2\` is for all and \`0=2\` for
  one; in the file a mapping says the same.
- Sizes: \`512MiB\` (powers of 1024) or \`500MB\` (powers of 1000). Durations: \`5ms\`. An empty variable counts as none. Paths that are not absolute
  count from the working directory.
- A key of the file that is not in this table is refused. A variable is not: Kubernetes makes some for its services, and they may look like ours.

## Options of a node

| file, flag, variable | default | meaning |
| --- | --- | --- |
`;

const ALLOCATION = `
## Options of an allocation

They are flags only.

| flag | default | meaning |
| --- | --- | --- |
`;

const END = `
This page is printed from \`gpu-proxy/src/configuration/schema.ts\` by \`node gpu-proxy/dist/pages.js\`; a test insists on it.
`;

/** docs/configuration.md */
export function configurationPage(): string {
  const node = [...optionsOf(NODE_OPTIONS).map((named) => row(named, names(named))), ...optionsOf(CONFIGURATION_FILE).map(configRow)];
  const allocation = optionsOf(ALLOCATION_OPTIONS).map((named) => row(named, [flagText(named)]));
  return INTRODUCTION + node.join('') + ALLOCATION + allocation.join('') + END;
}

function configRow(named: NamedOption): string {
  return row(named, names(named).slice(1));
}

function names(named: NamedOption): string[] {
  return [named.key, flagText(named), ...(named.variable === undefined ? [] : [named.variable])];
}

function flagText({ flag, option }: NamedOption): string {
  return `${flag} <${option.kind.placeholder}>`;
}

function row({ option }: NamedOption, spellings: readonly string[]): string {
  const { help, reloadable, default: text } = option.details;
  const meaning = `${help}. Allowed: ${option.kind.allowed}.${reloadable ? ' **Reloaded.**' : ''}`;
  const cells = [spellings.map((name) => `\`${name}\``).join('<br>'), text === undefined ? option.defaultText : `\`${text}\``, meaning];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
}
