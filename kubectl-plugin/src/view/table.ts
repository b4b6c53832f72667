/** A column of a table: its heading, and the function that formats its cells. */
export interface Column<Row> {
  readonly heading: string;
  /** Shown only with -o wide. */
  readonly wide?: true;
  /** Shown only if some row has a value. */
  readonly optional?: true;
  cell(row: Row): string;
  /** Style of the cell on a terminal. */
  style?(row: Row): Style | undefined;
}

export type Style = 'good' | 'warning' | 'bad' | 'dim';

const CODES: Readonly<Record<Style, string>> = { good: '32', warning: '33', bad: '31', dim: '2' };
const GAP = '   ';

/** Adds colour codes to text, or none if the output is no colour terminal. */
export type Painter = (text: string, style: Style | undefined) => string;

const PLAIN: Painter = (text) => text;
const COLOURED: Painter = (text, style) =>
  style === undefined ? text : `\u001b[${CODES[style]}m${text}\u001b[0m`;

/** Colours only on a terminal that supports them, unless NO_COLOR is set. */
export function painterFor(
  stream: { readonly isTTY?: boolean },
  environment: NodeJS.ProcessEnv,
): Painter {
  return stream.isTTY === true && !environment['NO_COLOR'] && environment['TERM'] !== 'dumb'
    ? COLOURED
    : PLAIN;
}

/** A table in kubectl's layout. Later rows can be added with the same widths. */
export class Table<Row> {
  readonly #columns: readonly Column<Row>[];
  readonly #paint: Painter;
  #widths: number[] = [];

  constructor(
    columns: readonly Column<Row>[],
    rows: readonly Row[],
    { wide = false, paint = PLAIN, keepOptional = false } = {},
  ) {
    this.#columns = columns.filter(
      (column) =>
        (wide || !column.wide) &&
        (keepOptional || !column.optional || rows.some((row) => column.cell(row) !== '')),
    );
    this.#paint = paint;
  }

  lines(rows: readonly Row[], headers = true): string[] {
    const cells = rows.map((row) => this.#columns.map((column) => column.cell(row)));
    const headings = headers ? [this.#columns.map(({ heading }) => heading)] : [];
    this.#widths = this.#columns.map((_, index) =>
      Math.max(
        this.#widths[index] ?? 0,
        ...[...headings, ...cells].map((line) => line[index]?.length ?? 0),
      ),
    );
    const body = cells.map((line, row) =>
      this.#line(line, (text, index) =>
        this.#paint(text, this.#columns[index]?.style?.(rows[row] as Row)),
      ),
    );
    return [...headings.map((line) => this.#line(line, (text) => text)), ...body];
  }

  /** The last column is not padded. Colour codes do not count as width. */
  #line(cells: readonly string[], dress: (text: string, index: number) => string): string {
    const last = cells.length - 1;
    const parts = cells.map(
      (cell, index) =>
        dress(cell, index) +
        (index === last ? '' : ' '.repeat((this.#widths[index] ?? 0) - cell.length)),
    );
    return parts.join(GAP).trimEnd();
  }
}
