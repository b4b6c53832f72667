/** Namespace of the product. */
export const RELEASE = 'nvidia-virtual';
export const NAMESPACE = 'nvidia-virtual';
