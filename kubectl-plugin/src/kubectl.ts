import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { KubectlError, PluginError } from './errors.js';

interface KubectlOptions {
  /** kubectl's flags that choose cluster and user. */
  readonly connection: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /** Timeout of each request except watches, in the format of --request-timeout. */
  readonly requestTimeout: string;
  /** Receives what kubectl writes to standard error, except its final error. */
  readonly say: (text: string) => void;
}

/** Start of kubectl's error message, which is the last text that it writes. */
const ERROR = /^(?:error: |Error |Unable to connect |The connection to )/m;
const POD_NAMESPACE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** Runs kubectl, which handles kubeconfig, credentials and proxies. */
export class Kubectl {
  readonly #options: KubectlOptions;
  readonly #warnings = new Set<string>();

  constructor(options: KubectlOptions) {
    this.#options = options;
  }

  /** @throws KubectlError, PluginError */
  get(path: string): Promise<string> {
    return this.#request(['get', '--raw', path]);
  }

  /** @param patch a merge patch. @throws KubectlError, PluginError */
  async patchPod(namespace: string, name: string, patch: object): Promise<void> {
    await this.#patch(['pod', name, `--namespace=${namespace}`], patch);
  }

  /** As patchPod(). */
  async patchNode(name: string, patch: object): Promise<void> {
    await this.#patch(['node', name], patch);
  }

  async #patch(target: readonly string[], patch: object): Promise<void> {
    const content = ['--type=merge', '--patch', JSON.stringify(patch), '--output=name'];
    await this.#request(['patch', ...target, ...content]);
  }

  #request(args: readonly string[]): Promise<string> {
    return this.#text([...args, `--request-timeout=${this.#options.requestTimeout}`]);
  }

  /** Yields the complete lines of a streamed answer. @throws KubectlError, PluginError */
  async *lines(path: string): AsyncGenerator<string> {
    let rest = '';
    for await (const chunk of this.#output(['get', '--raw', path])) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  }

  /** The namespace that kubectl uses without -n: the context's, else the pod's, else "default". */
  async namespace(): Promise<string> {
    try {
      const namespace = await this.#view('{..namespace}', ['--minify']);
      if (namespace !== '') return namespace;
    } catch (error) {
      // There is no current context. An unreadable kubeconfig also fails the next request.
      if (!(error instanceof KubectlError)) throw error;
    }
    return existsSync(POD_NAMESPACE) ? readFileSync(POD_NAMESPACE, 'utf8').trim() : 'default';
  }

  /** Names in the kubeconfig. */
  async names(list: 'contexts' | 'clusters' | 'users'): Promise<string[]> {
    const text = await this.#view(`{range .${list}[*]}{.name}{"\\n"}{end}`);
    return text.split('\n').filter(Boolean);
  }

  #view(jsonpath: string, args: readonly string[] = []): Promise<string> {
    return this.#text(['config', 'view', '-o', `jsonpath=${jsonpath}`, ...args]);
  }

  async #text(args: readonly string[]): Promise<string> {
    let text = '';
    for await (const chunk of this.#output(args)) text += chunk;
    return text;
  }

  /** Standard output. The process ends with the iteration, or with this process. */
  async *#output(args: readonly string[]): AsyncGenerator<string> {
    const { connection, environment } = this.#options;
    const child = spawn('kubectl', [...args, ...connection], {
      env: environment,
      // A credential plugin of the kubeconfig may ask for a password.
      stdio: ['inherit', 'pipe', 'pipe'],
    });
    await once(child, 'spawn').catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' ? new PluginError('KUBECTL_MISSING') : error;
    });
    const kill = () => void child.kill();
    process.once('exit', kill);
    let error = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      const begin = error === '' ? chunk.search(ERROR) : 0;
      const end = begin < 0 ? chunk.length : begin;
      this.#say(chunk.slice(0, end));
      error += chunk.slice(end);
    });
    const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
    try {
      yield* child.stdout.setEncoding('utf8') as AsyncIterable<string>;
      const [status, signal] = await closed;
      if (status !== 0)
        throw new KubectlError(error.trim() || `error: kubectl ended with ${signal ?? status}.`);
      this.#say(error);
    } finally {
      process.off('exit', kill);
      kill();
    }
  }

  /** Passes text on at once, so that login prompts are visible. Prints each warning once. */
  #say(text: string): void {
    if (text === '' || this.#warnings.has(text)) return;
    if (text.startsWith('Warning: ')) this.#warnings.add(text);
    this.#options.say(text);
  }
}
