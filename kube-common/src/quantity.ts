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

/** What is a size here; ends the sentence that begins with "give". */
export const QUANTITIES = 'a size above 0 as Kubernetes writes it, for example 8Gi or 500M';

/** Of a quantity; a longer text is none. */
const MOST_CHARACTERS = 64;

/**
 * Bytes of `8Gi`, `1.5G`, `1e9`; undefined for what is no size. Kubernetes' suffixes below 1 and
 * above T mean nothing for a GPU's memory.
 */
export function readQuantity(text: string): number | undefined {
  if (text.length > MOST_CHARACTERS) return undefined;
  const [, number, suffix = ''] =
    /^(\d+(?:\.\d+)?(?:[eE]\d+)?)([A-Za-z]*)$/.exec(text.trim()) ?? [];
  const unit = SUFFIXES[suffix];
  const bytes = number === undefined || unit === undefined ? 0 : Math.floor(Number(number) * unit);
  return bytes >= 1 && Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** As a user would have written it, to one decimal: `8Gi`, `1.5Gi`, `100`. */
export function formatQuantity(bytes: number): string {
  for (const suffix of ['Ti', 'Gi', 'Mi', 'Ki'] as const) {
    const unit = SUFFIXES[suffix] as number;
    if (bytes >= unit) return `${Number((bytes / unit).toFixed(1))}${suffix}`;
  }
  return String(bytes);
}
