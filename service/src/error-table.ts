type Values = Readonly<Record<string, string | number>>;

/** An error with a code, whose message is a sentence for users. */
export class CodedError<Code extends string> extends Error {
  readonly code: Code;

  constructor(name: string, code: Code, message: string) {
    super(message);
    this.name = name;
    this.code = code;
  }
}

export interface ErrorClass<Code extends string> {
  /** @param message instead of the sentence of the template */
  new (code: Code, values?: Values, message?: string): CodedError<Code>;
  readonly codes: readonly Code[];
  template(code: Code): string;
  sentence(code: Code, values?: Values): string;
}

/**
 * A class of errors whose sentences come from `templates`. `{name}` in a template is replaced by
 * the value of that name.
 */
export function defineErrors<Code extends string>(
  name: string,
  templates: Readonly<Record<Code, string>>,
): ErrorClass<Code> {
  const sentence = (code: Code, values: Values = {}) =>
    templates[code].replaceAll(/\{(\w+)\}/g, (_, key: string) => String(values[key])).trim();
  return class extends CodedError<Code> {
    static readonly codes = Object.keys(templates) as Code[];
    static readonly template = (code: Code) => templates[code];
    static readonly sentence = sentence;

    constructor(code: Code, values: Values = {}, message = sentence(code, values)) {
      super(name, code, message);
    }
  };
}
