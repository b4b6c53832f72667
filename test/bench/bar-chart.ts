/** Horizontal bars in groups: one group per subject, one bar per series. */
export interface BarChart {
  readonly title: string;
  readonly axis: string;
  readonly series: readonly string[];
  readonly groups: readonly BarGroup[];
  /** A value marked by a vertical line. */
  readonly reference?: { readonly value: number; readonly label: string };
}

export interface BarGroup {
  readonly name: string;
  /** One per series. */
  readonly values: readonly number[];
}

const COLOURS = ['#9aa5b1', '#c96f2e', '#2c6fbb'];
const WIDTH = 800;
const LEFT = 290;
const RIGHT = 80;
const TOP = 84;
const BAR = 14;
const GAP = 12;
const PLOT = WIDTH - LEFT - RIGHT;

/** An SVG with its own background, readable on a light and on a dark page. */
export function renderBarChart({ title, axis, series, groups, reference }: BarChart): string {
  const largest = Math.max(...groups.flatMap(({ values }) => values), reference?.value ?? 0);
  const step = tickStep(largest);
  const end = Math.ceil(largest / step - 1e-9) * step;
  const x = (value: number) => LEFT + (value / end) * PLOT;
  const groupHeight = series.length * BAR + GAP;
  const bottom = TOP + groups.length * groupHeight;
  const colours = COLOURS.slice(-series.length);
  const height = bottom + 44;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ` +
      `${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="Helvetica, ` +
      `Arial, sans-serif" font-size="12" fill="#24292f">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" rx="6" fill="#ffffff"/>`,
    `<text x="16" y="26" font-size="15" font-weight="bold">${escaped(title)}</text>`,
    ...legend(series, colours),
    ...ticks(end, step, x, bottom),
    `<text x="${LEFT + PLOT / 2}" y="${bottom + 34}" text-anchor="middle">${escaped(axis)}</text>`,
    ...groups.flatMap((group, index) =>
      bars(group, TOP + index * groupHeight + GAP / 2, colours, x),
    ),
    ...(reference === undefined ? [] : mark(reference, x, bottom)),
    '</svg>\n',
  ].join('\n');
}

function legend(series: readonly string[], colours: readonly string[]): string[] {
  const width = (WIDTH - 32) / 3;
  return series.flatMap((name, index) => [
    `<rect x="${round(16 + index * width)}" y="40" width="12" height="12" ` +
      `fill="${colours[index]}"/>`,
    `<text x="${round(34 + index * width)}" y="50">${escaped(name)}</text>`,
  ]);
}

function ticks(end: number, step: number, x: (value: number) => number, bottom: number): string[] {
  const count = Math.round(end / step);
  return Array.from({ length: count + 1 }, (_, index) => index * step).flatMap((value) => [
    line(x(value), TOP, bottom, '#d0d7de'),
    `<text x="${round(x(value))}" y="${bottom + 16}" text-anchor="middle">${round(value)}</text>`,
  ]);
}

function bars(
  { name, values }: BarGroup,
  top: number,
  colours: readonly string[],
  x: (value: number) => number,
): string[] {
  const middle = top + (values.length * BAR) / 2 + 4;
  return [
    `<text x="${LEFT - 10}" y="${round(middle)}" text-anchor="end">${escaped(name)}</text>`,
    ...values.flatMap((value, index) => [
      `<rect x="${LEFT}" y="${top + index * BAR}" width="` +
        `${round(x(value) - LEFT)}" height="${BAR - 2}" fill="${colours[index]}"/>`,
      `<text x="${WIDTH - 16}" y="${top + index * BAR + 10}" font-size="11" ` +
        `text-anchor="end">${value.toFixed(2)}</text>`,
    ]),
  ];
}

function mark(
  { value, label }: NonNullable<BarChart['reference']>,
  x: (value: number) => number,
  bottom: number,
): string[] {
  return [
    line(x(value), TOP - 6, bottom, '#24292f', ' stroke-dasharray="4 3"'),
    `<text x="${round(x(value))}" y="${TOP - 12}" text-anchor="middle">${escaped(label)}</text>`,
  ];
}

function line(x: number, top: number, bottom: number, colour: string, more = ''): string {
  return (
    `<line x1="${round(x)}" y1="${top}" x2="` +
    `${round(x)}" y2="${bottom}" stroke="${colour}"${more}/>`
  );
}

/** Distance of ticks: 1, 2 or 5 times a power of ten, for four to ten ticks. */
function tickStep(largest: number): number {
  const power = 10 ** Math.floor(Math.log10(largest / 4));
  return [5, 2, 1].map((factor) => factor * power).find((step) => largest / step >= 4) ?? power;
}

/** Few digits, so that a chart is equal on every machine. */
function round(value: number): number {
  return Number(value.toFixed(2));
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
