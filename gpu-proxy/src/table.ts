/** Columns as wide as their widest cell, two spaces between them; numbers are told by their heading: one that begins with a space. */
export function formatTable(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const table = [headings.map((heading) => heading.trim()), ...rows];
  const widths = headings.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const cell = (text: string, column: number) =>
    headings[column]?.startsWith(' ') ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0);
  return table.map((row) => row.map(cell).join('  ').trimEnd());
}
