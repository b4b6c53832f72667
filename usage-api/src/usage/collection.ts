import { EventEmitter } from 'node:events';
import type { UsageObject } from '../resources.js';

export interface Change<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: T;
  /** Milliseconds since 1970: two replicas of this server then mean the same by a version. */
  readonly revision: number;
}

/** How long deletions are remembered, for watches that begin where a list ended. */
const REMEMBERED = 5 * 60_000;
/** Another replica's clock, and the time at which it looked, differ from ours by less. */
const SKEW = 10_000;

/** The objects of one kind, with their versions, and what changed. */
export class Collection<T extends UsageObject> extends EventEmitter<{
  changes: [changes: readonly Change<T>[]];
}> {
  #objects = new Map<string, { readonly object: T; readonly text: string }>();
  #deleted: Change<T>[] = [];
  readonly #since = Date.now();
  #revision = this.#since;
  /** Of the youngest deletion that is not remembered any more. */
  #forgotten = 0;

  constructor() {
    super();
    this.setMaxListeners(0);
  }

  /**
   * From which a watch can go on, here or at another replica. Where nothing has changed for long,
   * that is about now: a replica that began since then would know nothing of an older one.
   */
  get revision(): number {
    return Math.max(this.#revision, Date.now() - SKEW);
  }

  /** In the order of their names. */
  list(): T[] {
    return [...this.#objects.values()].map(({ object }) => object);
  }

  get(key: string): T | undefined {
    return this.#objects.get(key)?.object;
  }

  /**
   * All there is now. An object keeps its version as long as nothing but the time of its figures is
   * new.
   */
  replace(objects: readonly T[]): void {
    const revision = Math.max(Date.now(), this.#revision + 1);
    const next = new Map<string, { object: T; text: string }>();
    const changes: Change<T>[] = [];
    for (const object of objects.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))) {
      const text = JSON.stringify({ ...object, timestamp: undefined, windowSeconds: undefined });
      const before = this.#objects.get(keyOf(object));
      const same = before?.text === text;
      const versioned = withVersion(
        object,
        same ? (before.object.metadata.resourceVersion as string) : String(revision),
      );
      next.set(keyOf(object), { object: versioned, text });
      if (!same) changes.push({ type: before ? 'MODIFIED' : 'ADDED', object: versioned, revision });
    }
    for (const [key, { object }] of this.#objects)
      if (!next.has(key))
        changes.push({ type: 'DELETED', object: withVersion(object, String(revision)), revision });
    this.#objects = next;
    this.#remember(changes);
    if (changes.length === 0) return;
    this.#revision = revision;
    this.emit('changes', changes);
  }

  /**
   * What happened after a version, which may be another replica's: what may have happened before is
   * told, too. Undefined when that is too long ago to know.
   */
  changesSince(revision: number): Change<T>[] | undefined {
    if (revision < this.#since - SKEW || revision < this.#forgotten || revision > Date.now() + SKEW)
      return undefined;
    const changed = this.list().map((object) => ({
      type: 'MODIFIED' as const,
      object,
      revision: Number(object.metadata.resourceVersion),
    }));
    const deleted = this.#deleted.filter(({ object }) => !this.#objects.has(keyOf(object)));
    return [...deleted, ...changed]
      .filter((change) => change.revision > revision - SKEW)
      .sort((a, b) => a.revision - b.revision);
  }

  #remember(changes: readonly Change<T>[]): void {
    const oldest = Date.now() - REMEMBERED;
    const deleted = changes.filter(({ type }) => type === 'DELETED');
    const known = this.#deleted.filter(({ revision }) => revision >= oldest);
    this.#forgotten =
      this.#deleted[this.#deleted.length - known.length - 1]?.revision ?? this.#forgotten;
    this.#deleted = [...known, ...deleted];
  }
}

export function keyOf({ metadata }: UsageObject): string {
  return metadata.namespace === undefined
    ? metadata.name
    : `${metadata.namespace}/${metadata.name}`;
}

function withVersion<T extends UsageObject>(object: T, resourceVersion: string): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}
