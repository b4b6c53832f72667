import { mkdirSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { allocationsIn } from '@nvidia-virtual/node-state/paths';
import { HttpService } from '@nvidia-virtual/service/http';
import { Log } from '@nvidia-virtual/service/log';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import { readBootId } from '@nvidia-virtual/service/process-table';
import type { Logger } from 'pino';
import { Claim } from './claim.js';
import { findConflict } from './coexistence.js';
import { answer } from './container-answer.js';
import { PluginError } from './errors.js';
import { slotUsers, versionsInUse } from './grants.js';
import { KnownGpus, type Listing } from './known-gpus.js';
import { KubeletLink } from './kubelet-link.js';
import { Metrics } from './metrics.js';
import { checkNode } from './node-check.js';
import type { NodeTrouble } from './node-object.js';
import { NodeReporter } from './node-reporter.js';
import type { ServeOptions } from './options.js';
import type { AllocateRequest, AllocateResponse } from './protocol.js';
import { type PodReport, ProxyFollower } from './proxy-follower.js';
import { SlotList } from './slot-list.js';
import { installVersion, removeOldVersions, type Version } from './versions.js';

const CONFLICT_CHECK_MS = 10_000;
const NODE_CHECK_MS = 60_000;
const CLEANING_MS = 600_000;

/**
 * Everything that `serve` runs: slots, registration with the kubelet, and connections to gpu-proxy
 * and the API server.
 */
export class PluginService {
  readonly #options: ServeOptions;
  readonly #node: string;
  readonly #logger: Logger;
  readonly #slots = new SlotList();
  readonly #metrics: Metrics;
  readonly #http: HttpService;
  readonly #version: Version;
  readonly #known: KnownGpus;
  readonly #claim: Claim;
  readonly #reporter: NodeReporter | undefined;
  readonly #follower: ProxyFollower;
  #link: KubeletLink | undefined;
  #conflict: PluginError | undefined;
  #lacks: readonly PluginError[] = [];
  #pods: PodReport = { arrivals: [], placed: [] };
  #proxyAway: PluginError | undefined;
  #proxySeen = performance.now();
  #proxyAnswers = false;
  readonly #timers: NodeJS.Timeout[] = [];
  #ended = false;

  /** @throws PluginError, ProxyError */
  constructor(options: ServeOptions) {
    const {
      state,
      installation,
      versions,
      logLevel: level,
      node = hostname(),
      kubeconfig,
    } = options;
    this.#options = options;
    this.#node = node;
    this.#logger = new Log({ file: '-', level }).logger;
    this.#version = installVersion(installation, versions);
    const directory = path.join(state, 'device-plugin');
    this.#known = KnownGpus.open(directory, readBootId());
    mkdirSync(allocationsIn(state), { recursive: true, mode: 0o711 });
    this.#claim = new Claim(directory);
    this.#metrics = new Metrics(node, {
      slots: () => ({
        healthy: this.#slots.count('Healthy'),
        unhealthy: this.#slots.count('Unhealthy'),
      }),
      watched: () => this.#link?.watched ?? false,
      proxyAnswers: () => this.#proxyAnswers,
      gpus: () =>
        this.#known.all.map(({ uuid, unhealthy }) => ({ uuid, healthy: unhealthy === '' })),
    });
    this.#http = this.#makeHttp();
    const inCluster =
      kubeconfig !== undefined || process.env['KUBERNETES_SERVICE_HOST'] !== undefined;
    this.#reporter = inCluster
      ? new NodeReporter({ node, kubeconfig, logger: this.#logger })
      : undefined;
    this.#follower = new ProxyFollower({
      state,
      told: (listing, pods) => this.#hear(listing, pods),
      away: (reason) => this.#missProxy(reason),
    });
  }

  /**
   * Registers with the kubelet first: without slots it rejects pods that it already has.
   * @throws ProxyError HTTP_NOT_SERVED
   */
  async start(): Promise<void> {
    this.#showSlots();
    this.#checkNode();
    await this.#settle();
    await this.#http.move(this.#options.http);
    this.#follower.start();
    this.#every(CONFLICT_CHECK_MS, () => void this.#settle());
    this.#every(NODE_CHECK_MS, () => this.#checkNode());
    this.#every(CLEANING_MS, () => this.#clean());
    const { node, version } = { node: this.#node, version: this.#version.name };
    this.#logger.info(
      { node, version, slots: this.#slots.devices.length, http: this.#http.address },
      'serving',
    );
  }

  /** Stops. Running containers continue; new ones get slots from the next plugin. */
  async end(signal: NodeJS.Signals): Promise<void> {
    this.#ended = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#follower.end();
    this.#link?.end();
    this.#link = undefined;
    this.#reporter?.end();
    await this.#http.move(undefined);
    this.#logger.info(
      { signal },
      'ended: containers go on, and the next device plugin offers the same slots',
    );
  }

  /** Offers the slots, or withdraws them if there is a conflict. */
  async #settle(): Promise<void> {
    const { kubeletRoot, allow = [] } = this.#options;
    const gpus = this.#known.all.map(({ uuid }) => uuid);
    const conflict = await findConflict({ node: this.#node, kubeletRoot, allow }, gpus);
    if (this.#ended) return;
    if (conflict && conflict.message !== this.#conflict?.message)
      this.#logger.error(conflict.message);
    this.#conflict = conflict;
    if (conflict) {
      this.#link?.end();
      this.#link = undefined;
    } else if (gpus.length > 0) await this.#offer();
    this.#report();
  }

  /** What the node lacks does not withdraw slots: programs that run prove it wrong. */
  #checkNode(): void {
    const { backend, versions } = this.#options;
    const directory = path.dirname(versions);
    const lacks = checkNode({ node: this.#node, backend, directory });
    for (const { message } of lacks)
      if (!this.#lacks.some((former) => former.message === message)) this.#logger.warn(message);
    this.#lacks = lacks;
    this.#report();
  }

  async #offer(): Promise<void> {
    if (this.#link) return;
    this.#link = new KubeletLink({
      directory: path.join(this.#options.kubeletRoot, 'device-plugins'),
      ...{ slots: this.#slots, claim: this.#claim, logger: this.#logger },
      allocate: (request) => this.#allocate(request),
      registered: () => this.#metrics.registered(),
    });
    await this.#link.start();
  }

  #allocate(request: AllocateRequest): AllocateResponse {
    const granting = {
      node: this.#node,
      state: this.#options.state,
      version: this.#version,
      slots: this.#slots,
      nvidiaSmi: this.#options.nvidiaSmi,
      preload: this.#options.preload,
    };
    const slots = request.containerRequests.map(({ devicesIds }) => devicesIds);
    try {
      const response = this.#metrics.allocation(() => answer(request, granting));
      this.#logger.info({ slots }, 'granted');
      return response;
    } catch (error) {
      this.#logger.error({ slots }, (error as Error).message);
      throw error;
    }
  }

  #hear(listing: Listing, pods: PodReport): void {
    this.#proxySeen = performance.now();
    this.#proxyAnswers = true;
    this.#proxyAway = undefined;
    const areMoved = !isDeepStrictEqual(pods, this.#pods);
    this.#pods = pods;
    const changed = this.#attempt(() => this.#known.take(listing)) ?? false;
    this.#showSlots();
    if (changed) {
      const { all: gpus, leaving } = this.#known;
      this.#logger.info({ gpus, leaving: leaving.map(({ uuid }) => uuid) }, 'GPUs of the node');
      void this.#settle();
    } else if (areMoved) this.#report();
  }

  /** Updates the slots. Their users are needed only if GPUs have failed or are leaving. */
  #showSlots(): void {
    const known = this.#known;
    const matters = known.leaving.length > 0 || known.all.some(({ unhealthy }) => unhealthy !== '');
    const users = matters ? this.#attempt(() => slotUsers(this.#options.state)) : [];
    if (users) this.#attempt(() => known.forgetUnused(users));
    this.#slots.update({
      gpus: known.all,
      leaving: known.leaving,
      ...(users && { users }),
      closed: false,
    });
  }

  #missProxy(reason: string): void {
    this.#proxyAnswers = false;
    const seconds = Math.round(this.#options.proxyPatience / 1e6);
    if (this.#proxyAway || performance.now() - this.#proxySeen < seconds * 1000) return;
    this.#proxyAway = new PluginError('PROXY_AWAY', { node: this.#node, seconds, reason });
    this.#logger.error(this.#proxyAway.message);
    this.#slots.update({ closed: true });
    this.#report();
  }

  #report(): void {
    const gpus = this.#conflict ? [] : this.#known.all;
    const { arrivals, placed } = this.#pods;
    const inventory = {
      version: 1,
      gpus: gpus.map(({ unhealthy, ...gpu }) => ({ ...gpu, healthy: unhealthy === '' })),
      ...(this.#known.movable && { movable: true }),
      ...(arrivals.length > 0 && { arrivals }),
      ...(placed.length > 0 && { placed }),
    } as const;
    const unhealthy = gpus
      .filter((gpu) => gpu.unhealthy !== '')
      .map((gpu) => `GPU ${gpu.uuid} (${gpu.name}) cannot be used: ${gpu.unhealthy}`);
    const troubles: NodeTrouble[] = [this.#proxyAway?.message ?? [], unhealthy]
      .flat()
      .map((message) => ({ reason: 'GpuSlotsUnhealthy', message }));
    for (const { uuid: gpu, name, slots, memory, slotMemory: slot } of gpus)
      if (slots === 0)
        troubles.push({
          reason: 'GpuSlotsNotOffered',
          message: new PluginError('GPU_WITHOUT_SLOT', {
            ...{ gpu, name, node: this.#node },
            memory: formatMemorySize(memory),
            slot: formatMemorySize(slot),
          }).message,
        });
    for (const { message } of this.#lacks) troubles.push({ reason: 'GpuNodeUnfit', message });
    if (this.#conflict)
      troubles.push({ reason: 'GpuSlotsNotOffered', message: this.#conflict.message });
    this.#reporter?.report(inventory, unhealthy, troubles);
  }

  /** Removes unused versions. Removes none while the versions in use are unknown. */
  #clean(): void {
    const { state, versions } = this.#options;
    const removed = this.#attempt(() => {
      const inUse = this.#claim.superseded ? undefined : versionsInUse(state);
      return inUse && removeOldVersions(versions, this.#version, inUse);
    });
    if (removed?.length) this.#logger.info({ removed }, 'versions removed that no container has');
  }

  #makeHttp(): HttpService {
    const { registry } = this.#metrics;
    return new HttpService({
      metrics: { contentType: registry.contentType, exposition: () => registry.metrics() },
      conditions: { kubelet: () => (this.#conflict ? undefined : this.#whyNotOffered()) },
      notes: {
        coexistence: () => this.#conflict?.message,
        proxy: () => (this.#proxyAnswers ? undefined : 'gpu-proxy does not answer.'),
        apiServer: () => this.#reporter?.failure,
      },
      logger: this.#logger,
    });
  }

  #whyNotOffered(): string | undefined {
    return this.#link
      ? this.#link.trouble
      : `gpu-proxy has not listed the GPUs yet, so no ${RESOURCE} is offered.`;
  }

  #every(milliseconds: number, step: () => void): void {
    this.#timers.push(setInterval(step, milliseconds));
  }

  #attempt<T>(step: () => T): T | undefined {
    try {
      return step();
    } catch (error) {
      this.#logger.error((error as Error).message);
      return undefined;
    }
  }
}
