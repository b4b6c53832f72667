import { isMap, LineCounter, type ParsedNode, parse, parseDocument, type YAMLMap } from 'yaml';
import { ToolchainError } from '../errors.js';

/** A JSON Schema from an `@schema` comment. */
export type Schema = Readonly<Record<string, unknown>>;

/** One value that a user may set. */
export interface ChartValue {
  /** `node.limits.sessions` */
  readonly key: string;
  readonly help: string;
  readonly default: unknown;
  /** Content of `@schema`. */
  readonly schema: Schema;
}

/** A section of values.yaml under one heading. */
export interface ValuesSection {
  readonly title: string;
  readonly introduction: string;
  readonly values: ChartValue[];
}

interface Comment {
  readonly help: string;
  readonly schema: Schema | undefined;
}

const HEADING = /^# == (.+)$/;
/** The end of a comment. It may have several lines. */
const SCHEMA = /(?:^|\n)@schema (.+)$/s;

/**
 * Reads the sections of a values.yaml. A mapping is a group of values. An empty mapping, or one
 * with `@schema`, is a single value.
 * @throws ToolchainError that lists all values without a comment
 */
export function readValuesFile(text: string): ValuesSection[] {
  return new ValuesReader(text).read();
}

class ValuesReader {
  readonly #lines: readonly string[];
  readonly #counter = new LineCounter();
  readonly #text: string;
  readonly #sections: (ValuesSection & { readonly line: number })[] = [];
  readonly #unexplained: string[] = [];

  constructor(text: string) {
    this.#text = text;
    this.#lines = text.split('\n');
  }

  read(): ValuesSection[] {
    const document = parseDocument(this.#text, { lineCounter: this.#counter });
    const [error] = document.errors;
    if (error || !isMap(document.contents))
      throw new ToolchainError(`values.yaml is no mapping: ${error?.message}`);
    this.#readSections();
    this.#readGroup(document.contents as YAMLMap.Parsed, '');
    if (this.#unexplained.length > 0)
      throw new ToolchainError(
        `values.yaml does not explain ${this.#unexplained.join(', ')}: put a comment above.`,
      );
    return this.#sections.map(({ title, introduction, values }) => ({
      title,
      introduction,
      values,
    }));
  }

  #readSections(): void {
    for (const [index, line] of this.#lines.entries()) {
      const title = HEADING.exec(line)?.[1];
      if (title === undefined) continue;
      const end = this.#lines.findIndex((later, at) => at > index && !later.startsWith('#'));
      const introduction = this.#lines
        .slice(index + 1, end)
        .map(uncomment)
        .join('\n')
        .trim();
      this.#sections.push({ title, introduction, values: [], line: index });
    }
  }

  #readGroup({ items }: YAMLMap.Parsed, prefix: string): void {
    for (const { key, value } of items) {
      const line = this.#counter.linePos(key.range[0]).line - 1;
      this.#readValue(`${prefix}${key.toString()}`, value, line, this.#commentAbove(line));
    }
  }

  #readValue(key: string, value: ParsedNode | null, line: number, { help, schema }: Comment): void {
    if (isMap(value) && value.items.length > 0 && schema === undefined) {
      this.#readGroup(value as YAMLMap.Parsed, `${key}.`);
      return;
    }
    if (help === '') this.#unexplained.push(key);
    const section = this.#sections.findLast((one) => one.line < line);
    if (section === undefined)
      throw new ToolchainError(
        `values.yaml has no heading above ${key}: begin a section by "# == Title".`,
      );
    section.values.push({ key, help, default: value?.toJSON() ?? null, schema: schema ?? {} });
  }

  /** The comment directly above this line. */
  #commentAbove(line: number): Comment {
    let first = line;
    while (first > 0 && /^\s*#/.test(this.#lines[first - 1] as string)) first--;
    const comment = this.#lines.slice(first, line).map(uncomment).join('\n');
    const schema = SCHEMA.exec(comment)?.[1]?.replaceAll('\n', ' ');
    const help = comment.replace(SCHEMA, '').replaceAll('\n', ' ');
    return { help, schema: schema === undefined ? undefined : (parse(schema) as Schema) };
  }
}

function uncomment(line: string): string {
  return line.replace(/^\s*# ?/, '');
}
