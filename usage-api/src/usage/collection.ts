import { EventEmitter } from 'node:events';
import type { UsageObject } from '../resources.js';

export interface Change<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: T;
  /** Milliseconds since 1970, so that versions mean the same on all replicas. */
  readonly revision: number;
}

/** Milliseconds for which deletions are kept for watches that continue after a list. */
const DELETION_TTL = 5 * 60_000;
/** Maximum difference in milliseconds between the clocks and read times of replicas. */
const SKEW = 10_000;

/** The objects of one kind with their versions and recent changes. */
export class Collection<T extends UsageObject> extends EventEmitter<{
  changes: [changes: readonly Change<T>[]];
}> {
  #objects = new Map<string, { readonly object: T; readonly text: string }>();
  #deleted: Change<T>[] = [];
  readonly #since = Date.now();
  #revision = this.#since;
  /** Revision of the latest deletion that was evicted. */
  #evicted = 0;

  constructor() {
    super();
    this.setMaxListeners(0);
  }

  /**
   * Version from which a watch can continue on any replica. It advances with the clock even without
   * changes, because a replica that started later does not know older versions.
   */
  get revision(): number {
    return Math.max(this.#revision, Date.now() - SKEW);
  }

  /** Sorted by key. */
  list(): T[] {
    return [...this.#objects.values()].map(({ object }) => object);
  }

  get(key: string): T | undefined {
    return this.#objects.get(key)?.object;
  }

  /**
   * Replaces all objects. An object keeps its version if only the time of its figures changed.
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
    this.#keepDeletions(changes);
    if (changes.length === 0) return;
    this.#revision = revision;
    this.emit('changes', changes);
  }

  /**
   * Changes since a version, which may come from another replica: to allow for clock skew, earlier
   * changes are included. Undefined if the version is too old.
   */
  changesSince(revision: number): Change<T>[] | undefined {
    if (revision < this.#since - SKEW || revision < this.#evicted || revision > Date.now() + SKEW)
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

  #keepDeletions(changes: readonly Change<T>[]): void {
    const oldest = Date.now() - DELETION_TTL;
    const deleted = changes.filter(({ type }) => type === 'DELETED');
    const known = this.#deleted.filter(({ revision }) => revision >= oldest);
    this.#evicted =
      this.#deleted[this.#deleted.length - known.length - 1]?.revision ?? this.#evicted;
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
