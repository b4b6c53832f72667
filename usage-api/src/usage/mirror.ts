import { EventEmitter } from 'node:events';
import type { Reflection } from '@nvidia-virtual/kube-common/reflector';

/** The fields of a Kubernetes object needed here. */
interface KubernetesObject {
  readonly metadata?:
    | { readonly name?: string | undefined; readonly namespace?: string | undefined }
    | undefined;
}

/** The needed part of an object. Undefined: the object is not needed at all. */
interface Mirrored<T> {
  readonly key: string;
  readonly kept: T | undefined;
}

/** Objects of one kind, kept current by a Reflector. */
export class Mirror<T> extends EventEmitter<{ changed: [] }> implements Reflection<Mirrored<T>> {
  #items = new Map<string, T>();
  #synced = false;

  get items(): ReadonlyMap<string, T> {
    return this.#items;
  }

  /** Whether the first list is complete. */
  get synced(): boolean {
    return this.#synced;
  }

  replace(objects: readonly Mirrored<T>[]): void {
    this.#items = new Map(
      objects.flatMap(({ key, kept }) => (kept === undefined ? [] : [[key, kept] as const])),
    );
    this.#synced = true;
    this.emit('changed');
  }

  put({ key, kept }: Mirrored<T>): void {
    if (kept === undefined) {
      this.remove({ key, kept });
    } else {
      this.#items.set(key, kept);
      this.emit('changed');
    }
  }

  remove({ key }: Mirrored<T>): void {
    if (this.#items.delete(key)) this.emit('changed');
  }
}

/** The `read` function of a Reflector that fills a Mirror. */
export function mirrored<Raw extends KubernetesObject, T>(
  keep: (object: Raw) => T | undefined,
): (object: Raw) => Mirrored<T> {
  return (object) => {
    const { namespace, name = '' } = object.metadata ?? {};
    return { key: namespace === undefined ? name : `${namespace}/${name}`, kept: keep(object) };
  };
}
