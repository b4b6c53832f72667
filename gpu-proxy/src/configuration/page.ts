import { ALLOCATION_OPTIONS } from '@nvidia-virtual/node-state/allocation-options';
import { type NamedOption, optionsOf } from '@nvidia-virtual/service/configuration/option';
import { CONFIGURATION_FILE, NODE_OPTIONS } from './schema.js';

const INTRODUCTION = `# Configuration of gpu-proxy

An option of \`gpu-proxy serve\` can be set in three places. A flag overrides an environment \
variable,
and a variable overrides the configuration file, which \`--config\` names. Exceptions:

- \`--config\` is no key of the file.
- \`--socket\` has no variable and is no key of the file.
- \`--memory\`, which is allowed only with \`--socket\`, is a flag only.

gpu-proxy checks all options at start. It prints every mistake with its place and the allowed
values.

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

- Reload: \`kill -HUP\` makes a running gpu-proxy read its file again. It applies changes of the
  options marked **Reloaded**, and logs the names of changed options that need a restart. If the new
  file has mistakes, gpu-proxy logs them and changes nothing.
- Several values: repeat the flag, separate values by commas in the variable, or write a list in the
  file.
- Values for each GPU: \`2\` is for all GPUs, \`0=2\` for GPU 0. In the file, write a mapping.
- Sizes: \`512MiB\` (powers of 1024) or \`500MB\` (powers of 1000). Durations: \`5ms\`.
- An empty variable counts as not set. Relative paths start at the working directory.
- An unknown key of the file is an error. An unknown variable is ignored, because Kubernetes sets
  variables for its services, and their names may begin like ours.

## Options of a node

| file, flag, variable | default | meaning | allowed |
| --- | --- | --- | --- |
`;

const ALLOCATION = `
## Options of an allocation

These options are flags only.

| flag | default | meaning | allowed |
| --- | --- | --- | --- |
`;

const END = `
\`node gpu-proxy/dist/pages.js\` prints this page from \`gpu-proxy/src/configuration/schema.ts\`. \
A test
checks that it is current.
`;

/** docs/configuration.md */
export function configurationPage(): string {
  const node = [
    ...optionsOf(NODE_OPTIONS).map((named) => row(named, names(named))),
    ...optionsOf(CONFIGURATION_FILE).map(configRow),
  ];
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
  const cells = [
    spellings.map((name) => `\`${name}\``).join('<br>'),
    text === undefined ? option.defaultText : `\`${text}\``,
    `${help}.${reloadable ? ' **Reloaded.**' : ''}`,
    option.kind.allowed,
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
}
