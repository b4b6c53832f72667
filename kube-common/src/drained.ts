/** UUIDs, in lower case. @param text the annotation of the node */
export function drainedGpus(text: string | undefined): Set<string> {
  const uuids = (text ?? '').split(',').map((uuid) => uuid.trim().toLowerCase());
  return new Set(uuids.filter(Boolean));
}
