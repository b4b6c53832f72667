import { spawn } from 'node:child_process';
import type { ClusterEntry, ExecEntry } from './kubeconfig.js';

export interface ExecCredential {
  readonly token: string | undefined;
  /** PEM. */
  readonly certificate: string | undefined;
  readonly key: string | undefined;
}

/** The program that a kubeconfig names for credentials did not give any. */
export class ExecCredentialError extends Error {
  override readonly name = 'ExecCredentialError';

  constructor(
    readonly command: string,
    readonly reason: string,
    readonly hint: string | undefined,
  ) {
    super(`${command}: ${reason}`);
  }
}

interface ExecAnswer {
  readonly status?: {
    readonly token?: string;
    readonly clientCertificateData?: string;
    readonly clientKeyData?: string;
    readonly expirationTimestamp?: string;
  };
}

const VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];

/** Asks the program for credentials (client.authentication.k8s.io), and again when they have expired. */
export class ExecCredentials {
  readonly #entry: ExecEntry;
  readonly #cluster: ClusterEntry;
  readonly #environment: NodeJS.ProcessEnv;
  #current: { readonly credential: ExecCredential; readonly until: number } | undefined;

  /** @param cluster with the authority itself: the program is told of no files. */
  constructor(entry: ExecEntry, cluster: ClusterEntry, environment: NodeJS.ProcessEnv) {
    this.#entry = entry;
    this.#cluster = cluster;
    this.#environment = environment;
  }

  /** @throws ExecCredentialError */
  async current(): Promise<ExecCredential> {
    if (!this.#current || this.#current.until <= Date.now()) this.#current = read(this.#entry, await this.#ask());
    return this.#current.credential;
  }

  async #ask(): Promise<string> {
    const { command, args, env, apiVersion = '', interactiveMode } = this.#entry;
    if (!VERSIONS.includes(apiVersion))
      throw this.#error(`it speaks ${apiVersion || 'no version'}, and understood are ${VERSIONS.join(' and ')}`);
    const interactive = interactiveMode !== 'Never' && process.stdin.isTTY === true;
    if (interactiveMode === 'Always' && !interactive) throw this.#error('it needs a terminal, and there is none');
    const given = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
    const information = { apiVersion, kind: 'ExecCredential', spec: { interactive, ...this.#clusterInformation() } };
    const child = spawn(command, args ?? [], {
      env: { ...this.#environment, ...given, KUBERNETES_EXEC_INFO: JSON.stringify(information) },
      stdio: [interactive ? 'inherit' : 'ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (output += text));
    const status = await new Promise<number | NodeJS.Signals>((resolve, reject) => {
      child.once('error', ({ message, code }: NodeJS.ErrnoException) =>
        reject(this.#error(code === 'ENOENT' ? 'it was not found' : message)),
      );
      child.once('close', (code, signal) => resolve(signal ?? (code as number)));
    });
    if (status !== 0) throw this.#error(`it ended with ${status}`);
    return output;
  }

  #clusterInformation(): object {
    if (!this.#entry.provideClusterInfo) return {};
    const told = ['server', 'certificate-authority-data', 'tls-server-name', 'insecure-skip-tls-verify', 'proxy-url'] as const;
    return { cluster: Object.fromEntries(told.map((key) => [key, this.#cluster[key]])) };
  }

  #error(reason: string): ExecCredentialError {
    return new ExecCredentialError(this.#entry.command, reason, this.#entry.installHint);
  }
}

function read({ command, installHint }: ExecEntry, output: string): { credential: ExecCredential; until: number } {
  let status: ExecAnswer['status'];
  try {
    status = (JSON.parse(output) as ExecAnswer).status;
  } catch {
    throw new ExecCredentialError(command, 'what it wrote is no ExecCredential', installHint);
  }
  const { token, clientCertificateData: certificate, clientKeyData: key, expirationTimestamp } = status ?? {};
  if (token === undefined && (certificate === undefined || key === undefined))
    throw new ExecCredentialError(
      command,
      'the ExecCredential that it wrote has neither a token nor a certificate with its key',
      installHint,
    );
  const until = expirationTimestamp === undefined ? Number.POSITIVE_INFINITY : Date.parse(expirationTimestamp);
  return { credential: { token, certificate, key }, until };
}
