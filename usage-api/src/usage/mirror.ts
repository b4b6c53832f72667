import { EventEmitter } from 'node:events';
import type { Reflection } from '@nvidia-virtual/kube-common/reflector';

/** What every object of Kubernetes has, as far as it matters here. */
interface KubernetesObject {
  readonly metadata?:
    | { readonly name?: string | undefined; readonly namespace?: string | undefined }
    | undefined;
}

/** An object, of which perhaps nothing is of interest here. */
export interface Mirrored<T> {
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

  /** True once everything was read. */
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

/** For a Reflector: how an object is read. */
export function mirrored<Raw extends KubernetesObject, T>(
  keep: (object: Raw) => T | undefined,
): (object: Raw) => Mirrored<T> {
  return (object) => {
    const { namespace, name = '' } = object.metadata ?? {};
    return { key: namespace === undefined ? name : `${namespace}/${name}`, kept: keep(object) };
  };
}
