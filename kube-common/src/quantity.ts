const SUFFIXES: Record<string, number> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** Describes valid sizes. Completes the sentence "VALUE must be …". */
export const QUANTITIES = 'a Kubernetes quantity above 0, for example 8Gi or 500M';

/** Maximum length of a quantity. */
const MAXIMUM_LENGTH = 64;

/**
 * Parses `8Gi`, `1.5G` or `1e9` to bytes. Undefined if invalid. Kubernetes' suffixes below 1 and
 * above T are not supported.
 */
export function readQuantity(text: string): number | undefined {
  if (text.length > MAXIMUM_LENGTH) return undefined;
  const [, number, suffix = ''] =
    /^(\d+(?:\.\d+)?(?:[eE]\d+)?)([A-Za-z]*)$/.exec(text.trim()) ?? [];
  const unit = SUFFIXES[suffix];
  const bytes = number === undefined || unit === undefined ? 0 : Math.floor(Number(number) * unit);
  return bytes >= 1 && Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Formats bytes as a quantity with at most one decimal: `8Gi`, `1.5Gi`, `100`. */
export function formatQuantity(bytes: number): string {
  for (const suffix of ['Ti', 'Gi', 'Mi', 'Ki'] as const) {
    const unit = SUFFIXES[suffix] as number;
    if (bytes >= unit) return `${Number((bytes / unit).toFixed(1))}${suffix}`;
  }
  return String(bytes);
}
