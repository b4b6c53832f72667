import { stringify } from 'yaml';
import type { ChartValue, ValuesSection } from './values-file.js';

const INTRODUCTION = `# Values of the chart

\`helm install nvidia-virtual charts/nvidia-virtual -n nvidia-virtual --create-namespace\` installs everything with the defaults below.
[docs/install.md](../../docs/install.md) says what to look at first; [Chart.yaml](Chart.yaml) has the versions of Kubernetes. A value that is not in these
tables is refused, and so are values that contradict each other: with a sentence each, before anything is changed.
`;

const END = `
This page and [values.schema.json](values.schema.json) are printed from the comments of [values.yaml](values.yaml) by \`node toolchain/dist/chart/main.js\`; a test insists on it.
`;

/** README.md of the chart. */
export function valuesPage(sections: readonly ValuesSection[]): string {
  return INTRODUCTION + sections.map(sectionText).join('') + END;
}

function sectionText({ title, introduction, values }: ValuesSection): string {
  const text = introduction === '' ? '' : `${introduction}\n\n`;
  return `\n## ${title}\n\n${text}| value | default | meaning |\n| --- | --- | --- |\n${values.map(row).join('')}`;
}

function row(value: ChartValue): string {
  const cells = [`\`${value.key}\``, defaultText(value), `${value.help}${allowedText(value)}`];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
}

function defaultText({ default: value }: ChartValue): string {
  if (value === '') return '';
  const text = stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim();
  // What does not fit into a table is read where it stands.
  return text.length > 120 ? 'see values.yaml' : `\`${text}\``;
}

function allowedText({ schema }: ChartValue): string {
  const { enum: choices, minimum, maximum } = schema as { enum?: string[]; minimum?: number; maximum?: number };
  if (choices) return ` Allowed: ${choices.join(', ')}.`;
  if (maximum !== undefined) return ` Allowed: ${minimum ?? 0} to ${maximum}.`;
  return '';
}
