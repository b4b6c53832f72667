/** Returns the path of the first part that is wrong. Undefined: the value is valid. */
type Check = (value: unknown) => string | undefined;

/** A node has at most some thousand sessions. JavaScript calls fail with 125,000 arguments. */
const MOST_LISTED = 20_000;

/** Names and words. Readers show them in terminals. */
const text = when((value) => typeof value === 'string' && /^[ -~]{0,1024}$/.test(value));
/** Made printable by its reader. */
const sentence = when((value) => typeof value === 'string');
const flag = when((value) => typeof value === 'boolean');
const number = when(Number.isFinite);

/** What readers of a snapshot use. Other fields are not checked. */
const SNAPSHOT = record({
  node: text,
  gpus: list(record({ uuid: text, index: number, name: text, memory: number, mode: text })),
  allocations: list(
    record({
      specification: record({
        id: text,
        gpus: list(text),
        memory: number,
        share: number,
        policy: text,
        priority: number,
        latency: optional(text),
        suspended: optional(flag),
        suspendedBy: optional(list(text)),
        owner: optional(record({ namespace: text, pod: text, podUid: text, container: text })),
      }),
      time: record({ granted: number, waited: number, overrun: number }),
      state: optional(text),
      outBytes: optional(number),
      suspensionRefused: optional(sentence),
      sessions: list(
        record({ use: record({ memory: number, peakMemory: number, faults: number }) }),
      ),
    }),
  ),
});

/**
 * Why a value is not the snapshot of this node. Undefined: it is one. Redis is not trusted: whoever
 * has its password can write anything there.
 */
export function problemOfSnapshot(value: unknown, node: string): string | undefined {
  const place = SNAPSHOT(value);
  if (place !== undefined) return `its snapshot${place} is not as expected`;
  return (value as { node: string }).node === node ? undefined : 'it is of another node';
}

function when(isValid: (value: unknown) => boolean): Check {
  return (value) => (isValid(value) ? undefined : '');
}

function optional(check: Check): Check {
  return (value) => (value === undefined ? undefined : check(value));
}

function list(check: Check): Check {
  return (value) => {
    if (!Array.isArray(value) || value.length > MOST_LISTED) return '';
    const index = value.findIndex((one) => check(one) !== undefined);
    return index < 0 ? undefined : `[${index}]${check(value[index])}`;
  };
}

function record(fields: Readonly<Record<string, Check>>): Check {
  return (value) => {
    if (typeof value !== 'object' || value === null) return '';
    for (const [name, check] of Object.entries(fields)) {
      const place = check((value as Record<string, unknown>)[name]);
      if (place !== undefined) return `.${name}${place}`;
    }
    return undefined;
  };
}
