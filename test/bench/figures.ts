/** One measured figure, with an optional reference and an optional limit. */
export interface Figure {
  readonly name: string;
  readonly unit: string;
  readonly value: number;
  /** Name of the figure by which `value` is divided for `ratio`. */
  readonly reference?: string;
  readonly ratio?: number;
  readonly limit?: string;
  readonly holds?: boolean;
}

export interface LocalResults {
  readonly machine: { readonly processor: string; readonly cores: number; readonly date: string };
  readonly figures: readonly Figure[];
}

/** Parses the output of a program in test/bench: one JSON object per line. */
export interface Printed {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}

export function parsePrinted(text: string): Printed[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map(
      (line) =>
        JSON.parse(line) as {
          name: string;
          value?: number;
          unit?: string;
          nanoseconds?: number;
          ratio?: number;
        },
    )
    .map(({ name, value, unit, nanoseconds, ratio }) => ({
      name,
      value: value ?? nanoseconds ?? ratio ?? Number.NaN,
      unit: unit ?? (ratio === undefined ? 'ns' : 'x'),
    }));
}

export interface Comparison {
  readonly name: string;
  readonly reference?: string;
  /** The ratio that the program measured round by round, or else the quotient. */
  readonly measured?: string;
  readonly most?: number;
  readonly least?: number;
}

/** Missing figures are an error: a program that measured nothing must not look fast. */
export function compare(printed: readonly Printed[], comparisons: readonly Comparison[]): Figure[] {
  const find = (name: string) => {
    const found = printed.find((one) => one.name === name);
    if (!found || !Number.isFinite(found.value)) throw new Error(`nothing measured "${name}"`);
    return found;
  };
  return comparisons.map(({ name, reference, measured, most, least }) => {
    const figure = find(name);
    const quotient = reference === undefined ? undefined : figure.value / find(reference).value;
    const ratio = measured === undefined ? quotient : find(measured).value;
    const judged = ratio ?? figure.value;
    const limit =
      most !== undefined ? `<= ${most}` : least !== undefined ? `>= ${least}` : undefined;
    const holds = most !== undefined ? judged <= most : judged >= (least ?? 0);
    return {
      ...figure,
      ...(reference === undefined ? {} : { reference, ratio: judged }),
      ...(limit === undefined ? {} : { limit, holds }),
    };
  });
}
