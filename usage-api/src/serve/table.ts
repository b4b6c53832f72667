import type { Definition } from '../definitions.js';
import type { UsageObject } from '../resources.js';

/** Content of a row beside its cells: the object's metadata, or the whole object. */
export type IncludeObject = 'Metadata' | 'Object';

/** Common to all tables of one request. */
export interface TableShape<T extends UsageObject> {
  readonly definition: Definition<T>;
  readonly includeObject: IncludeObject;
}

/** A Table for `kubectl get`. In a watch only the first one has column definitions. */
export function table<T extends UsageObject>(
  shape: TableShape<T>,
  objects: readonly T[],
  metadata: object,
  withColumns = true,
): object {
  const { columns } = shape.definition;
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: withColumns
      ? columns.map(({ read: _, ...column }) => ({ format: '', description: '', ...column }))
      : null,
    rows: objects.map((object) => ({
      cells: columns.map(({ read }) => read(object)),
      ...rowObject(shape, object),
    })),
  };
}

function rowObject<T extends UsageObject>({ includeObject }: TableShape<T>, object: T): object {
  if (includeObject === 'Object') return { object };
  return {
    object: {
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: object.metadata,
    },
  };
}
