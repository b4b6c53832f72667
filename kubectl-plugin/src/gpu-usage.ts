import { printable } from '@nvidia-virtual/service/printable';
import type { NodeGpuUsage, PodGpuUsage, UsageObject } from '@nvidia-virtual/usage-api/resources';
import { readNamespaceUsage } from './charge-back.js';
import type { CommandLine } from './command-line.js';
import { Drain } from './drain.js';
import { PluginError } from './errors.js';
import { Kubectl } from './kubectl.js';
import { Move } from './move.js';
import { PodObject } from './pod-object.js';
import { type Shown, shownNodes, shownPods } from './shown.js';
import { runSupport } from './support.js';
import { Suspension } from './suspension.js';
import type { Terminal } from './terminal.js';
import { type List, UsageClient } from './usage-client.js';
import { NAMESPACE_COLUMNS, sortNamespaces } from './view/namespaces.js';
import { nameLine, objectText } from './view/objects.js';
import { podLines, podTable } from './view/pods.js';
import { type Painter, painterFor, Table } from './view/table.js';

/** One run of the command. */
export class GpuUsage {
  readonly #line: CommandLine;
  readonly #terminal: Terminal;
  readonly #paint: Painter;
  readonly #kubectl: Kubectl;
  readonly #client: UsageClient;

  constructor(line: CommandLine, terminal: Terminal) {
    this.#line = line;
    this.#terminal = terminal;
    this.#paint = painterFor(terminal.out, terminal.environment);
    this.#kubectl = new Kubectl({
      connection: line.connection,
      environment: terminal.environment,
      requestTimeout: line.flags.requestTimeout,
      say: (text) => terminal.err.write(text),
    });
    this.#client = new UsageClient(this.#kubectl);
  }

  /** @throws PluginError, KubectlError */
  async run(): Promise<void> {
    const { request, flags } = this.#line;
    if (request.what === 'doctor' || request.what === 'bundle')
      return runSupport(this.#line, this.#terminal);
    if (request.name !== undefined && flags.allNamespaces)
      throw new PluginError('USAGE', {
        reason: 'A pod or node name cannot be combined with --all-namespaces',
      });
    if (request.what === 'suspend' || request.what === 'resume' || request.what === 'move')
      await this.#changePod(request.what, request.name);
    else if (request.what === 'drain' || request.what === 'undrain')
      await this.#changeGpu(request.what, request.name);
    else if (request.what === 'namespaces') await this.#showNamespaces();
    else if (flags.watch) await this.#watch();
    else if (request.name !== undefined) await this.#showOne(request.what, request.name);
    else if (request.what === 'nodes') await this.#showList(shownNodes(this.#line));
    else await this.#showList(shownPods(this.#line, await this.#namespace()));
  }

  async #changePod(what: 'suspend' | 'resume' | 'move', name: string | undefined): Promise<void> {
    const { timeout: timeoutMs, gpu } = this.#line.flags;
    if (name === undefined)
      throw new PluginError('USAGE', { reason: `"${what}" requires the name of a pod` });
    if (what === 'move' && gpu === undefined)
      throw new PluginError('USAGE', { reason: '"move" requires --gpu' });
    const [kubectl, client, namespace] = [this.#kubectl, this.#client, await this.#namespace()];
    const named = { namespace: namespace ?? '', name };
    const pod = new PodObject({ kubectl, ...named });
    const sentence =
      what === 'move'
        ? await new Move({ pod, client, timeoutMs, ...named, gpu: gpu ?? '' }).run()
        : await new Suspension({ pod, client, timeoutMs, ...named })[what]();
    this.#print(`${sentence}\n`);
  }

  async #changeGpu(what: 'drain' | 'undrain', node: string | undefined): Promise<void> {
    const { timeout: timeoutMs, gpu } = this.#line.flags;
    if (node === undefined || gpu === undefined)
      throw new PluginError('USAGE', { reason: `"${what}" requires a node and --gpu` });
    const [kubectl, client] = [this.#kubectl, this.#client];
    const drain = new Drain({ kubectl, client, node, gpu, timeoutMs });
    const say = (line: string) => this.#printLines([line]);
    this.#print(`${what === 'drain' ? await drain.drain(say) : await drain.undrain()}\n`);
  }

  /** Undefined: all namespaces. */
  async #namespace(): Promise<string | undefined> {
    const { namespace, allNamespaces } = this.#line.flags;
    return allNamespaces ? undefined : (namespace ?? this.#kubectl.namespace());
  }

  async #showList<T extends UsageObject>(shown: Shown<T>): Promise<void> {
    const list = await shown.list(this.#client);
    this.#printList(shown, { ...list, items: shown.sort(list.items) });
  }

  #printList<T extends UsageObject>(shown: Shown<T>, list: List<T>): void {
    const { output, headers } = this.#line.flags;
    if (output === 'json' || output === 'yaml') this.#print(objectText(list, output));
    else if (list.items.length === 0) this.#say(shown.nothing);
    else if (output === 'name') this.#printLines(list.items.map(nameLine));
    else this.#printLines(shown.rows(list.items, this.#paint, false).lines(list.items, headers));
  }

  async #showNamespaces(): Promise<void> {
    const { flags } = this.#line;
    const { output, headers, namespace, sortBy, since } = flags;
    if (flags.watch)
      throw new PluginError('USAGE', { reason: '"namespaces" is a sum and cannot be watched' });
    const { prometheus } = flags;
    const all = await readNamespaceUsage(this.#kubectl, { prometheus, since });
    const shown = sortNamespaces(all, sortBy).filter(
      (one) => namespace === undefined || one.namespace === namespace,
    );
    if (output === 'json' || output === 'yaml')
      this.#print(objectText({ since, items: shown }, output));
    else if (shown.length === 0)
      this.#say(`Prometheus knows no pod that used a GPU in the last ${since}.`);
    else if (output === 'name') this.#printLines(shown.map((one) => printable(one.namespace)));
    else this.#printLines(new Table(NAMESPACE_COLUMNS, shown).lines(shown, headers));
  }

  async #showOne(what: 'pod' | 'pods' | 'node' | 'nodes', name: string): Promise<void> {
    const { output } = this.#line.flags;
    const object =
      what === 'pod'
        ? await this.#client.pod((await this.#namespace()) ?? '', name)
        : await this.#client.node(name);
    if (output === 'json' || output === 'yaml') this.#print(objectText(object, output));
    else if (output === 'name') this.#printLines([nameLine(object)]);
    else if (object.kind === 'PodGpuUsage') this.#printLines(podLines(object, this.#paint));
    else await this.#showNode(object);
  }

  /** Shows its GPUs, then the pods that share them, if the user may list them. */
  async #showNode(node: NodeGpuUsage): Promise<void> {
    const { flags } = this.#line;
    this.#printLines(
      shownNodes(this.#line).rows([node], this.#paint, false).lines([node], flags.headers),
    );
    const pods = await this.#podsOn(node.metadata.name);
    if (pods.length === 0) return;
    const table = podTable(pods, true, { wide: flags.output === 'wide', paint: this.#paint });
    this.#printLines(['', ...table.lines(pods, flags.headers)]);
  }

  async #podsOn(node: string): Promise<readonly PodGpuUsage[]> {
    try {
      return (await this.#client.pods({ fields: `node=${node}` })).items;
    } catch (error) {
      if (!(error instanceof PluginError) || error.code !== 'FORBIDDEN') throw error;
      this.#say(
        'The pods that share these GPUs are not shown: you may not list pods of all namespaces.',
      );
      return [];
    }
  }

  /** Like kubectl: prints all objects, then a row for each change. */
  async #watch(): Promise<void> {
    const { what } = this.#line.request;
    if (what === 'node' || what === 'nodes') return this.#follow(shownNodes(this.#line));
    return this.#follow(shownPods(this.#line, await this.#namespace()));
  }

  async #follow<T extends UsageObject>(shown: Shown<T>): Promise<never> {
    const { output, headers } = this.#line.flags;
    for (let first = true; ; first = false) {
      const list = await shown.list(this.#client);
      const items = shown.sort(list.items);
      const rows = shown.rows(items, this.#paint, true);
      const print = (objects: readonly T[], withHeaders: boolean) => {
        if (output === 'json' || output === 'yaml')
          for (const one of objects)
            this.#print((output === 'yaml' ? '---\n' : '') + objectText(one, output));
        else
          this.#printLines(
            output === 'name' ? objects.map(nameLine) : rows.lines(objects, withHeaders),
          );
      };
      print(items, headers && first);
      const changes = this.#client.changes<T>(
        shown.resource,
        shown.selection,
        list.metadata.resourceVersion ?? '',
      );
      for await (const { type, object } of changes) if (type !== 'ERROR') print([object], false);
    }
  }

  #printLines(lines: readonly string[]): void {
    if (lines.length > 0) this.#print(`${lines.join('\n')}\n`);
  }

  #print(text: string): void {
    this.#terminal.out.write(text);
  }

  #say(sentence: string): void {
    this.#terminal.err.write(`${sentence}\n`);
  }
}
