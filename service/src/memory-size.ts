const UNITS: Record<string, number> = {
  '': 1,
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};
/** Describes valid memory sizes. Completes the sentence "VALUE must be …". */
export const MEMORY_SIZES =
  'a number above 0 with B, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, ' +
  'TiB (powers of 1024), for example 512MiB';
const BY_LOWER_CASE = new Map(
  Object.entries(UNITS).map(([unit, bytes]) => [unit.toLowerCase(), bytes]),
);

/** Parses `512MiB`, `1.5 GB`, `4096`. Returns bytes; undefined if malformed. */
export function readMemorySize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim());
  const unit = BY_LOWER_CASE.get(match?.[2]?.toLowerCase() ?? '');
  const bytes = match && unit !== undefined ? Math.floor(Number(match[1]) * unit) : 0;
  return bytes >= 1 && Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Formats bytes in the shortest exact or nearly exact form: `512 MiB`, `1.5 GiB`, `100 bytes`. */
export function formatMemorySize(bytes: number): string {
  for (const unit of ['TiB', 'GiB', 'MiB', 'KiB'] as const) {
    const size = UNITS[unit] as number;
    if (bytes >= size) return `${Number((bytes / size).toFixed(1))} ${unit}`;
  }
  return bytes === 1 ? '1 byte' : `${bytes} bytes`;
}
