import { readFileSync } from 'node:fs';
import {
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type ParsedNode,
  parseDocument,
  type YAMLMap,
} from 'yaml';
import { ProxyError, systemReason } from '../errors.js';
import { Option, type Schema } from './option.js';
import type { Entry, Source } from './source.js';

/**
 * Reads the options of `schema` from a configuration file.
 * @returns the values, and all errors in the file
 */
export function readFileSource(
  path: string,
  schema: Schema,
): { source: Source; problems: ProxyError[] } {
  const reader = new FileReader(path);
  try {
    reader.read(readFileSync(path, 'utf8'), schema);
  } catch (error) {
    reader.problems.push(
      new ProxyError('CONFIGURATION_FILE', { where: path, reason: systemReason(error) }),
    );
  }
  return { source: ({ key }) => reader.entries.get(key), problems: reader.problems };
}

class FileReader {
  readonly entries = new Map<string, readonly Entry[]>();
  readonly problems: ProxyError[] = [];
  readonly #lines = new LineCounter();

  constructor(readonly path: string) {}

  read(text: string, schema: Schema): void {
    const document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false });
    for (const { pos, message } of document.errors)
      this.problems.push(
        new ProxyError('CONFIGURATION_FILE', { where: this.#at(pos[0]), reason: message }),
      );
    if (this.problems.length === 0) this.#readGroup(document.contents, schema, '');
  }

  #readGroup(node: ParsedNode | null, schema: Schema, prefix: string): void {
    if (isNothing(node)) return;
    const known = Object.keys(schema).join(', ');
    if (!isMap(node)) {
      const where = this.#where(node, prefix.slice(0, -1) || 'the file');
      this.problems.push(
        new ProxyError('OPTION_VALUE', {
          where,
          value: describe(node),
          allowed: `names and values; names are ${known}`,
        }),
      );
      return;
    }
    for (const { key, value } of (node as YAMLMap.Parsed).items) {
      const name = textOf(key) ?? '';
      const item = Object.hasOwn(schema, name) ? schema[name] : undefined;
      if (item === undefined)
        this.problems.push(
          new ProxyError('OPTION_UNKNOWN', { where: this.#where(key, prefix + name), known }),
        );
      else if (item instanceof Option) this.#readOption(value, item, prefix + name);
      else this.#readGroup(value, item, `${prefix}${name}.`);
    }
  }

  #readOption(node: ParsedNode | null, option: Option<unknown>, key: string): void {
    if (isNothing(node)) return;
    const entries: Entry[] = [];
    for (const [value, gpu] of partsOf(node, option.kind.shape)) {
      const where = this.#where(value, key);
      const text = textOf(value);
      if (text !== undefined)
        entries.push({ where, text: gpu === undefined ? text : `${gpu}=${text}` });
      else
        this.problems.push(
          new ProxyError('OPTION_VALUE', {
            where,
            value: describe(value),
            allowed: option.kind.allowed,
          }),
        );
    }
    if (entries.length > 0) this.entries.set(key, entries);
  }

  #where(node: ParsedNode, key: string): string {
    return `${this.#at(node.range[0])}: ${key}`;
  }

  #at(offset: number): string {
    return `${this.path}:${this.#lines.linePos(offset).line}`;
  }
}

/** The single values of an option. Values of a mapping come with their GPU. */
function partsOf(
  node: ParsedNode,
  shape: Option<unknown>['kind']['shape'],
): (readonly [ParsedNode, string?])[] {
  if (isSeq(node) && shape !== 'one') return node.items.map((item) => [item as ParsedNode]);
  if (isMap(node) && shape === 'perGpu')
    return (node as YAMLMap.Parsed).items.map(({ key, value }) => [
      value ?? key,
      textOf(key) ?? '',
    ]);
  return [[node]];
}

/** A key without a value counts as missing. */
function isNothing(node: ParsedNode | null): node is null {
  return node === null || (isScalar(node) && node.value === null);
}

/** A scalar as written, without quotes. */
function textOf(node: ParsedNode): string | undefined {
  if (!isScalar(node)) return undefined;
  return typeof node.value === 'string' ? node.value : (node.source ?? String(node.value));
}

function describe(node: ParsedNode): string {
  if (isScalar(node)) return JSON.stringify(textOf(node));
  return isSeq(node) ? 'a list' : isMap(node) ? 'a mapping' : 'an alias';
}
