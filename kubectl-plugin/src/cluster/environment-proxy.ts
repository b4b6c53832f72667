import { BlockList, isIP, isIPv6 } from 'node:net';

const LOOPBACK = ['127.0.0.0/8', '::1/128'];

/** The proxy that HTTPS_PROXY names, unless NO_PROXY excepts the server: both mean what they mean to kubectl. */
export function environmentProxy({ protocol, hostname, port }: URL, environment: NodeJS.ProcessEnv): string | undefined {
  const proxy = environment['HTTPS_PROXY'] || environment['https_proxy'];
  if (protocol !== 'https:' || !proxy) return undefined;
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  if (host === 'localhost' || LOOPBACK.some((network) => isWithin(host, network))) return undefined;
  const exceptions = (environment['NO_PROXY'] || environment['no_proxy'] || '').split(',').map((one) => one.trim().toLowerCase());
  if (exceptions.some((exception) => covers(exception, host, port || '443'))) return undefined;
  // `proxy:3128` is usual, too.
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

/** What NO_PROXY lists: `*`, networks, and addresses and domains, perhaps with a port. */
function covers(exception: string, host: string, port: string): boolean {
  if (exception === '*') return true;
  if (exception.includes('/')) return isWithin(host, exception);
  const [, name = exception, only = ''] = isIPv6(exception) ? [] : (/^(.*):(\d*)$/.exec(exception) ?? []);
  if (name === '' || (only !== '' && only !== port)) return false;
  const address = name.replace(/^\[(.*)\]$/, '$1');
  return isIP(address) === 0 ? isOfDomain(host, name) : isWithin(host, `${address}/${bitsOf(address)}`);
}

/** `example` is also its subdomains; `.example` and `*.example` are these alone. */
function isOfDomain(host: string, domain: string): boolean {
  const bare = domain.replace(/^\*?\./, '');
  return host.endsWith(`.${bare}`) || (host === bare && bare === domain);
}

function isWithin(host: string, network: string): boolean {
  const [, address = '', bits = ''] = /^(.+)\/(\d{1,3})$/.exec(network) ?? [];
  if (isIP(host) === 0 || isIP(address) === 0 || Number(bits) > bitsOf(address)) return false;
  const list = new BlockList();
  list.addSubnet(address, Number(bits), familyOf(address));
  return list.check(host, familyOf(host));
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}

function bitsOf(address: string): number {
  return isIPv6(address) ? 128 : 32;
}
