// The program of the dashboard, for browsers. It reads the usage API beside its own path, so it
// shows what Kubernetes' RBAC lets its user see. Texts of the cluster become text nodes, never
// markup.
import type { ContainerUsage, GpuUsage, NodeGpuUsage, PodGpuUsage } from '../src/resources.js';

const REFRESH_MS = 5000;
const GIB = 2 ** 30;

/** What one request returned: objects, or why there are none. */
interface Listed<T> {
  readonly items: readonly T[];
  readonly problem?: string;
}

type Cell = string | Node;

/** A pod's part of one GPU, from 0 to 1. */
interface Part {
  readonly name: string;
  readonly part: number;
}

const namespace = /\/namespaces\/([^/]+)\/dashboard\/?$/.exec(location.pathname)?.[1];
/** The version's path: `/apis/usage.nvidia-virtual.io/v1alpha1/`, with what a proxy puts before. */
const root = location.pathname.replace(/(namespaces\/[^/]+\/)?dashboard\/?$/, '');

async function list<T>(path: string): Promise<Listed<T>> {
  try {
    const answer = await fetch(root + path, { headers: { accept: 'application/json' } });
    const body = (await answer.json()) as { items?: T[]; message?: string };
    if (answer.ok) return { items: body.items ?? [] };
    return { items: [], problem: body.message ?? `The API answered ${answer.status}.` };
  } catch (error) {
    return { items: [], problem: `The API did not answer: ${(error as Error).message}.` };
  }
}

function find(id: string): HTMLElement {
  return document.getElementById(id) as HTMLElement;
}

function element(tag: string, content: Cell | readonly Cell[] = [], kind = ''): HTMLElement {
  const made = document.createElement(tag);
  if (kind !== '') made.className = kind;
  made.append(...[content].flat());
  return made;
}

function size(bytes: number | undefined): string {
  return bytes === undefined ? '–' : `${(bytes / GIB).toFixed(1)} GiB`;
}

function percent(value: number | undefined): string {
  return value === undefined ? '–' : `${Math.round(value)} %`;
}

function total(
  containers: readonly ContainerUsage[],
  figure: (container: ContainerUsage) => number | undefined,
): number | undefined {
  const known = containers.map(figure).filter((value) => value !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0);
}

function nameOf({ metadata }: PodGpuUsage): string {
  return namespace === undefined ? `${metadata.namespace}/${metadata.name}` : metadata.name;
}

/** The same colour for the same pod everywhere. */
function colour(name: string): string {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 360;
  return `hsl(${hash} 60% 50%)`;
}

/** The pod's name beside the colour that it has in the bars. */
function named(pod: PodGpuUsage): HTMLElement {
  const square = element('span', '', 'square');
  square.style.background = colour(nameOf(pod));
  return element('span', [square, nameOf(pod)]);
}

function bar(parts: readonly Part[]): HTMLElement {
  const spans = parts.map(({ name, part }) => {
    const span = element('span');
    span.style.width = `${Math.min(1, part) * 100}%`;
    span.style.background = colour(name);
    span.title = `${name}: ${percent(part * 100)}`;
    return span;
  });
  return element('div', spans, 'bar');
}

/** The pods' parts of a GPU. */
function partsOf(
  pods: readonly PodGpuUsage[],
  uuid: string,
  figure: (container: ContainerUsage) => number,
): Part[] {
  return pods.flatMap((pod) => {
    const here = pod.containers.filter(({ gpus }) => gpus.some((gpu) => gpu.uuid === uuid));
    const part = here.reduce((sum, each) => sum + figure(each), 0);
    return part > 0 ? [{ name: nameOf(pod), part }] : [];
  });
}

function row(label: string, parts: readonly Part[], figure: string): HTMLElement[] {
  return [element('dt', label), element('dd', [bar(parts)]), element('dd', figure, 'figure')];
}

function gpuCard(node: NodeGpuUsage, gpu: GpuUsage, pods: readonly PodGpuUsage[]): HTMLElement {
  const { memory, time, slots } = gpu;
  // Memory and slots are sums over a container's GPUs, time is that of each.
  const each = (amount: number, { gpus }: ContainerUsage) => amount / gpus.length;
  const used = partsOf(pods, gpu.uuid, (one) => (one.time.used ?? 0) / 100);
  const resident = ({ used: held = 0, out = 0 }: ContainerUsage['memory']) => held - out;
  const bytes = partsOf(pods, gpu.uuid, (one) => each(resident(one.memory), one) / memory.total);
  const taken = partsOf(pods, gpu.uuid, (one) => each(one.slots, one) / slots.total);
  const title = `${node.metadata.name} / ${gpu.index ?? gpu.uuid}`;
  return element('article', [
    element('h3', gpu.healthy ? title : `${title} failed`, gpu.healthy ? '' : 'alarm'),
    element('p', `${gpu.name}, ${gpu.mode}`),
    element('dl', [
      ...row('Time', used, percent(time.used)),
      ...row('Memory', bytes, `${size(memory.used)} of ${size(memory.total)}`),
      ...row('Slots', taken, `${slots.free} of ${slots.total} free`),
    ]),
  ]);
}

function fillTable(id: string, titles: readonly string[], rows: readonly Cell[][]): void {
  const head = element('thead', [
    element(
      'tr',
      titles.map((title) => element('th', title)),
    ),
  ]);
  const lines = rows.map((cells) =>
    element(
      'tr',
      cells.map((cell) => element('td', [cell])),
    ),
  );
  find(id).replaceChildren(...(rows.length === 0 ? [] : [head, element('tbody', lines)]));
}

function note(id: string, problem: string | undefined, otherwise: string): void {
  find(id).textContent = problem ?? otherwise;
  find(id).className = problem === undefined ? '' : 'alarm';
}

function showNodes({ items, problem }: Listed<NodeGpuUsage>, pods: readonly PodGpuUsage[]): void {
  const cards = items.flatMap((node) => node.gpus.map((gpu) => gpuCard(node, gpu, pods)));
  find('gpus').replaceChildren(...cards);
  const messages = items.flatMap(({ metadata, message }) =>
    message === undefined ? [] : [`${metadata.name}: ${message}`],
  );
  note('gpus-note', problem, cards.length === 0 ? 'No node has GPUs.' : messages.join(' '));
}

function podRow(pod: PodGpuUsage): Cell[] {
  const { containers } = pod;
  const indices = containers.flatMap(({ gpus }) => gpus.map((gpu) => gpu.index ?? gpu.uuid));
  const used = total(containers, ({ memory }) => memory.used);
  const out = total(containers, ({ memory }) => memory.out) ?? 0;
  const quota = total(containers, ({ memory, gpus }) =>
    memory.quota === undefined ? undefined : memory.quota * Math.max(1, gpus.length),
  );
  const time = total(containers, (one) => one.time.used);
  const share = total(containers, (one) => one.time.share);
  return [
    named(pod),
    pod.state,
    String(pod.slots),
    `${size(used)} of ${size(quota)}${out > 0 ? `, ${size(out)} in host memory` : ''}`,
    `${percent(time)} of ${percent(share)}`,
    percent(total(containers, (one) => one.time.waiting)),
    pod.node === undefined ? '' : `${pod.node} / ${[...new Set(indices)].join(', ')}`,
    pod.message ?? '',
  ];
}

function showPods({ items, problem }: Listed<PodGpuUsage>): void {
  const waiting = items.filter(({ state }) => state === 'Waiting');
  const others = items.filter(({ state }) => state !== 'Waiting');
  const slotsAndReason = (pod: PodGpuUsage) => [
    nameOf(pod),
    String(pod.slots),
    pod.metadata.creationTimestamp ?? '',
    pod.message ?? '',
  ];
  fillTable('waiting', ['Pod', 'Slots', 'Since', 'Reason'], waiting.map(slotsAndReason));
  note('waiting-note', problem, waiting.length === 0 ? 'No pod waits.' : '');
  const titles = ['Pod', 'State', 'Slots', 'Memory', 'Time', 'Waited', 'Node / GPU', 'Message'];
  fillTable('pods', titles, others.map(podRow));
  note('pods-note', problem, others.length === 0 ? 'No pod has a GPU.' : '');
}

async function refresh(): Promise<void> {
  const within = namespace === undefined ? '' : `namespaces/${namespace}/`;
  const [pods, nodes] = await Promise.all([
    list<PodGpuUsage>(`${within}podgpuusages`),
    list<NodeGpuUsage>('nodegpuusages'),
  ]);
  showNodes(nodes, pods.items);
  showPods(pods);
  find('status').textContent = `As of ${new Date().toLocaleTimeString()}`;
}

async function run(): Promise<void> {
  find('place').textContent = namespace === undefined ? '' : `of namespace ${namespace}`;
  for (;;) {
    if (!document.hidden) await refresh();
    await new Promise((resolve) => setTimeout(resolve, REFRESH_MS));
  }
}

void run();
