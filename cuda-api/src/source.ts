import { readFileSync } from 'node:fs';
import { isMap, isScalar, isSeq, LineCounter, type ParsedNode, parseDocument } from 'yaml';

/** An error in the specification with its position: `calls/stream.yaml:12: …`. */
export class SpecificationError extends Error {
  constructor(
    readonly file: string,
    readonly line: number,
    readonly sentence: string,
  ) {
    super(`${file}:${line}: ${sentence}`);
    this.name = 'SpecificationError';
  }
}

class Source {
  readonly lines = new LineCounter();
  constructor(readonly file: string) {}
}

/**
 * A value of a YAML file with its position. Unexpected content is refused with file and line.
 */
export class Located {
  private constructor(
    private readonly source: Source,
    private readonly node: ParsedNode | null,
    private readonly offset: number,
  ) {}

  /** The top-level list of a specification file. `file` is the name for errors. */
  static readList(path: string, file: string): Located[] {
    const source = new Source(file);
    const document = parseDocument(readFileSync(path, 'utf8'), {
      lineCounter: source.lines,
      uniqueKeys: true,
    });
    const error = document.errors[0];
    if (error)
      throw new SpecificationError(
        file,
        source.lines.linePos(error.pos[0]).line,
        firstLine(error.message),
      );
    if (document.contents === null) return [];
    return new Located(source, document.contents, document.contents.range[0]).items();
  }

  get file(): string {
    return this.source.file;
  }

  get line(): number {
    return this.source.lines.linePos(this.offset).line;
  }

  fail(sentence: string): never {
    throw new SpecificationError(this.file, this.line, sentence);
  }

  get isText(): boolean {
    return isScalar(this.node);
  }

  /** A scalar as written, without quotes. */
  text(): string {
    if (!isScalar(this.node)) return this.fail('a string is expected here.');
    const { value, source } = this.node;
    return typeof value === 'string' ? value : (source ?? String(value));
  }

  integer(): number {
    const value = isScalar(this.node) ? this.node.value : undefined;
    if (typeof value !== 'number' || !Number.isSafeInteger(value))
      return this.fail('an integer is expected here.');
    return value;
  }

  oneOf<Word extends string>(words: readonly Word[]): Word {
    const text = this.text();
    return (
      words.find((word) => word === text) ??
      this.fail(`"${text}" is not one of: ${words.join(', ')}.`)
    );
  }

  items(): Located[] {
    const node = this.node;
    if (!isSeq(node)) return this.fail('a list is expected here.');
    return node.items.map((item) => this.at(item as ParsedNode));
  }

  /** The pairs of a mapping, in order. */
  pairs(): { key: Located; value: Located }[] {
    const node = this.node;
    if (!isMap(node)) return this.fail('a mapping (`name: value`) is expected here.');
    return node.items.map((pair) => {
      const key = this.at(pair.key as ParsedNode);
      return {
        key,
        value: pair.value
          ? this.at(pair.value as ParsedNode)
          : new Located(this.source, null, key.offset),
      };
    });
  }

  /** A mapping with only these keys. Other keys are refused. */
  fields<Key extends string>(known: readonly Key[]): Partial<Record<Key, Located>> {
    const found: Partial<Record<Key, Located>> = {};
    for (const { key, value } of this.pairs()) {
      const name = key.text();
      const match =
        known.find((each) => each === name) ??
        key.fail(`"${name}" is not a known key. Known keys: ${known.join(', ')}.`);
      found[match] = value;
    }
    return found;
  }

  private at(node: ParsedNode): Located {
    return new Located(this.source, node, node.range[0]);
  }
}

function firstLine(text: string): string {
  return (text.split('\n')[0] ?? text).replace(/ at line \d+.*$/, '').replace(/:$/, '');
}
