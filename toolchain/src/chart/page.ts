import { stringify } from 'yaml';
import type { ChartValue, ValuesSection } from './values-file.js';

const INTRODUCTION = `# Values of the chart

This command installs everything with the defaults below:

\`\`\`
helm install nvidia-virtual charts/nvidia-virtual -n nvidia-virtual --create-namespace
\`\`\`

[docs/install.md](../../docs/install.md) lists the values to set first, by kind of cluster.
[Chart.yaml](Chart.yaml) has the supported versions of Kubernetes. Helm refuses unknown values and
values that contradict each other before it changes anything, with a sentence for each.

- What enters: the values below, and the images of [images/](../../images/).
- What leaves: all objects of the product in a cluster, and hooks that check install and uninstall.
- Begin reading at [values.yaml](values.yaml), then \`templates/node/\` and \
\`templates/scheduler/\`.
`;

const END = `
\`node toolchain/dist/chart/main.js\` prints this page and [values.schema.json](values.schema.json)
from the comments of [values.yaml](values.yaml). A test checks that both are current.
`;

/** README.md of the chart. */
export function valuesPage(sections: readonly ValuesSection[]): string {
  return INTRODUCTION + sections.map(sectionText).join('') + END;
}

function sectionText({ title, introduction, values }: ValuesSection): string {
  const text = introduction === '' ? '' : `${introduction}\n\n`;
  return (
    `\n## ${title}\n\n${text}| value | default | meaning | allowed |\n| --- | --- | --- ` +
    `| --- |\n${values.map(row).join('')}`
  );
}

function row(value: ChartValue): string {
  const cells = [`\`${value.key}\``, defaultText(value), value.help, allowedText(value)];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
}

function defaultText({ default: value }: ChartValue): string {
  if (value === '') return '';
  const text = stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim();
  // Too long for a table.
  return text.length > 120 ? 'see values.yaml' : `\`${text}\``;
}

function allowedText({ schema }: ChartValue): string {
  const {
    enum: choices,
    minimum,
    maximum,
  } = schema as { enum?: string[]; minimum?: number; maximum?: number };
  if (choices) return choices.join(', ');
  if (maximum !== undefined) return `${minimum ?? 0} to ${maximum}`;
  return '';
}
