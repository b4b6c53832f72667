interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly type: string;
  readonly help: string;
  readonly samples: readonly ParsedSample[];
}

const NAME = /[a-zA-Z_][a-zA-Z0-9_]*/.source;
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`);
const LABEL = new RegExp(`(${NAME})="((?:[^"\\\\]|\\\\[\\\\n"])*)"(?:,|$)`, 'y');
const VALUE = /^(-?\d+(\.\d+)?(e[+-]?\d+)?|[+-]Inf|NaN)$/;

/** Strict parser of Prometheus' text format. @throws Error with the line that is wrong */
export function parseExposition(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const families = new Map<string, { type: string; help: string; samples: ParsedSample[] }>();
  const seen = new Set<string>();
  let family: { type: string; help: string; samples: ParsedSample[] } | undefined;
  let name = '';
  for (const line of text.split('\n')) {
    const [, help, helpText = ''] = /^# HELP (\S+) (.*)$/.exec(line) ?? [];
    const [, typed, type = ''] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (line === '') continue;
    if (help !== undefined) {
      if (families.has(help)) throw new Error(`${help} stands in two places`);
      name = help;
      family = { type: '', help: helpText, samples: [] };
      families.set(name, family);
    } else if (typed !== undefined) {
      if (typed !== name || !family || family.samples.length > 0)
        throw new Error(`a type where none is expected: ${line}`);
      family.type = type;
    } else {
      const sample = parseSample(line);
      if (!family || !namesOf(name, family.type).includes(sample.name))
        throw new Error(`no sample of ${name}: ${line}`);
      const series = JSON.stringify([sample.name, Object.entries(sample.labels).sort()]);
      if (seen.has(series)) throw new Error(`the same series twice: ${line}`);
      seen.add(series);
      family.samples.push(sample);
    }
  }
  return families;
}

function namesOf(family: string, type: string): string[] {
  return type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => family + end) : [family];
}

function parseSample(line: string): ParsedSample {
  const [, name, labels = '', value = ''] = SAMPLE.exec(line) ?? [];
  if (name === undefined || !VALUE.test(value)) throw new Error(`no sample: ${line}`);
  return {
    name,
    labels: parseLabels(labels, line),
    value: Number(value.replace('Inf', 'Infinity')),
  };
}

function parseLabels(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  let read = 0;
  for (LABEL.lastIndex = 0; read < text.length; read = LABEL.lastIndex) {
    const [, name, value] = LABEL.exec(text) ?? [];
    if (name === undefined || value === undefined || Object.hasOwn(labels, name))
      throw new Error(`wrong labels: ${line}`);
    labels[name] = value.replaceAll(/\\(.)/g, (_, letter: string) =>
      letter === 'n' ? '\n' : letter,
    );
  }
  return labels;
}
