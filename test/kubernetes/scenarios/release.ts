/** Where the product is installed. */
export const RELEASE = 'nvidia-virtual';
export const NAMESPACE = 'nvidia-virtual';
