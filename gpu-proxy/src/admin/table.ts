/**
 * Formats a table with columns of minimum width, two spaces apart. A heading that begins with a
 * space marks a column of numbers, which is aligned right.
 */
export function formatTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): string[] {
  const table = [headings.map((heading) => heading.trim()), ...rows];
  const widths = headings.map((_, column) =>
    Math.max(...table.map((row) => row[column]?.length ?? 0)),
  );
  const cell = (text: string, column: number) =>
    headings[column]?.startsWith(' ')
      ? text.padStart(widths[column] ?? 0)
      : text.padEnd(widths[column] ?? 0);
  return table.map((row) => row.map(cell).join('  ').trimEnd());
}
