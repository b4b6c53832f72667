interface Settable {
  set(labels: Record<'server', string>, value: number): void;
}

/**
 * Configuration of the gauge that says when the certificate of a server expires.
 * @param expiry Unix time in seconds; undefined without a certificate
 */
export function expiryMetric(server: string, expiry: () => number | undefined) {
  return {
    name: 'nvidia_virtual_certificate_expiry_timestamp_seconds',
    help: 'When the serving certificate expires, as Unix time.',
    labelNames: ['server'] as const,
    collect(this: Settable): void {
      const at = expiry();
      if (at !== undefined) this.set({ server }, at);
    },
  };
}
