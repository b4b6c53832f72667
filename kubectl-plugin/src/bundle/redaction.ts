import type { V1Secret } from '@kubernetes/client-node';

const HIDDEN = 'REDACTED';
/** Shorter values would hide ordinary words. */
const SHORTEST = 6;
const SECRET_NAME = /passw(or)?d|secret|token|credential|api_?key|private_?key|authorization/i;
/** Names of files and objects say nothing of their content. */
const REFERENCE = /(file|name|names|path|ref|mount|count|expirationseconds)$/i;
const PUBLIC_KEYS = ['ca.crt', 'tls.crt', 'namespace'];
const HELM_RELEASE = 'helm.sh/release.v1';
/** Fields of objects that repeat others. */
const REPEATED = ['managedFields', 'kubectl.kubernetes.io/last-applied-configuration'];

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, HIDDEN],
  [/\beyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*/g, HIDDEN],
  [/\b(Bearer|Basic)\s+[\w+/=.~-]+/gi, `$1 ${HIDDEN}`],
  [/(\w:\/\/[^\s/:@]*):[^\s/@]+@/g, `$1:${HIDDEN}@`],
  [
    /("?[\w.-]*(?:passw(?:or)?d|secret|token|credential|api[_-]?key|private[_-]?key)"?\s*[=:]\s*)("(?:[^"\\]|\\.)*"|[^\s,;}]+)/gi,
    `$1${HIDDEN}`,
  ],
];

/** Removes passwords, tokens and keys: what looks like one, and the content of known Secrets. */
export class Redaction {
  readonly #values: readonly string[];

  constructor(secrets: readonly V1Secret[]) {
    const values = secrets
      .filter(({ type }) => type !== HELM_RELEASE)
      .flatMap(({ data = {} }) => Object.entries(data))
      .filter(([key]) => !PUBLIC_KEYS.includes(key))
      .flatMap(([, encoded]) => [
        encoded,
        ...parts(Buffer.from(encoded, 'base64').toString('utf8')),
      ]);
    // The longest first: a value may contain another one.
    this.#values = [...new Set(values)]
      .filter(({ length }) => length >= SHORTEST)
      .toSorted((a, b) => b.length - a.length);
  }

  text(text: string): string {
    const known = this.#values.reduce((left, value) => left.replaceAll(value, HIDDEN), text);
    return PATTERNS.reduce((left, [pattern, shown]) => left.replaceAll(pattern, shown), known);
  }

  /** A copy of an object of Kubernetes. */
  object(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) return value.map((one) => this.object(one));
    if (typeof value !== 'object' || value === null) return value;
    const record = value as Record<string, unknown>;
    // An environment variable.
    const named = typeof record['name'] === 'string' && isSecret(record['name']);
    return Object.fromEntries(
      Object.entries(record)
        .filter(([key]) => !REPEATED.includes(key))
        .map(([key, field]) => {
          const secret = typeof field === 'string' && (isSecret(key) || (named && key === 'value'));
          return [key, secret ? HIDDEN : this.object(field)];
        }),
    );
  }
}

function isSecret(name: string): boolean {
  return SECRET_NAME.test(name) && !REFERENCE.test(name);
}

/** A value, its lines, and the texts in it if it is JSON, such as credentials of a registry. */
function parts(value: string): string[] {
  const lines = value.split('\n').map((line) => line.trim());
  return [value.trim(), ...lines, ...leaves(parsed(value))];
}

function parsed(value: string): unknown {
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return undefined;
  }
}

function leaves(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : [];
}
