import { setImmediate as othersPass } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Cluster } from '../cluster/cluster.js';
import { type PodRecord, readPod } from '../cluster/pod.js';
import { type SchedulerError, sentence } from '../errors.js';
import type { Judges } from '../placement/judges.js';
import { Steps } from '../placement/placement.js';
import { MOST_SCORE } from '../placement/verdict.js';
import type { Binder } from './binder.js';
import type { Eviction } from './eviction.js';
import type { Groups } from './groups.js';
import type {
  BindArgs,
  BindResult,
  ExtenderArgs,
  FilterResult,
  PreemptionArgs,
  PreemptionResult,
  PrioritizeResult,
} from './messages.js';
import type { Preemption, Preemptor } from './preemption.js';
import type { Retry } from './retry.js';
import type { Succession } from './succession.js';

interface ExtenderOptions {
  readonly cluster: Cluster;
  readonly judges: Judges;
  /** Percent of a GPU's time that a container may ask for with one slot. */
  readonly slotCores: number | undefined;
  readonly binder: Binder;
  readonly groups: Groups;
  readonly preemption: Preemption;
  readonly eviction: Eviction;
  readonly retry: Retry;
  readonly succession: Pick<Succession, 'wait'>;
  /** Undefined after all nodes and pods were listed; otherwise the reason. */
  readonly condition: () => string | undefined;
  readonly logger: Logger;
}

/**
 * Nodes that filter() returns at most: those with the best scores. kube-scheduler scores each of
 * them by all of its plugins, which takes longer than everything else with thousands of nodes. It
 * would itself score a sample of at least 100 of many nodes, by default.
 */
export const MOST_NODES = 100;

/** Milliseconds of judging nodes after which events and other requests are processed. */
const TURN = 10;

/** The requests of kube-scheduler, one method per verb. */
export class Extender {
  readonly #options: ExtenderOptions;

  constructor(options: ExtenderOptions) {
    this.#options = options;
  }

  /** Only this waits: kube-scheduler filters each pod before it binds it, one pod at a time. */
  async filter(args: ExtenderArgs): Promise<FilterResult> {
    await this.#options.succession.wait();
    return this.#filter(args);
  }

  /** Slots can be taken or become free while nodes are judged; bind() looks again. */
  async #filter({ Pod, NodeNames }: ExtenderArgs): Promise<FilterResult> {
    const unready = this.#options.condition();
    if (unready !== undefined) return { Error: sentence('NOT_READY', { reason: unready }) };
    if (!NodeNames) return { Error: sentence('NODES_NOT_NAMES') };
    const pod = readPod(Pod, this.#options.slotCores);
    if (pod === undefined) return { NodeNames };
    const { demand, problem = '' } = pod;
    if (demand === undefined)
      return {
        NodeNames: [],
        FailedAndUnresolvableNodes: Object.fromEntries(NodeNames.map((name) => [name, problem])),
      };
    const inGroup = pod.group !== undefined && !this.#options.cluster.isReserved(pod.uid);
    if (inGroup) this.#options.groups.filtering(pod);
    const accepted = this.#options.retry.judging({ ...pod, demand });
    const { fitting, failed, unresolvable } = await this.#judgeAll({ ...pod, demand }, NodeNames);
    const named = inGroup ? this.#options.groups.claim({ ...pod, demand }, fitting) : fitting;
    // kube-scheduler reads reasons only if it has no node. There are thousands.
    if (named.length > 0) {
      accepted();
      return { NodeNames: named };
    }
    const resolvable = Object.keys(failed);
    if (Pod.spec?.preemptionPolicy !== 'Never' && resolvable.length > 0)
      this.#options.eviction.consider({ ...pod, demand }, resolvable);
    return {
      NodeNames: [],
      FailedNodes: failed,
      FailedAndUnresolvableNodes: unresolvable,
    };
  }

  /** A pod that requests no slots scores 0 on all nodes. */
  prioritize({ Pod, NodeNames }: ExtenderArgs): PrioritizeResult {
    const { cluster } = this.#options;
    const pod = readPod(Pod, this.#options.slotCores);
    const judge = pod?.demand && this.#options.judges.of(pod.demand);
    const steps = new Steps();
    return (NodeNames ?? []).map((Host) => {
      const verdict = judge?.judge(cluster.node(Host), pod as PodRecord, steps);
      return { Host, Score: verdict && 'score' in verdict ? verdict.score : 0 };
    });
  }

  async bind(args: BindArgs): Promise<BindResult> {
    const { binder, condition, logger } = this.#options;
    const unready = condition();
    if (unready !== undefined) return { Error: sentence('NOT_READY', { reason: unready }) };
    try {
      await binder.bind(args);
      logger.debug(args, 'bound');
      return {};
    } catch (error) {
      logger.info({ ...args, reason: (error as Error).message }, 'not bound');
      return { Error: (error as SchedulerError).message };
    }
  }

  async preempt({ Pod, NodeNameToMetaVictims }: PreemptionArgs): Promise<PreemptionResult> {
    const pod = readPod(Pod, this.#options.slotCores);
    const asked = NodeNameToMetaVictims ?? {};
    if (pod?.demand === undefined) return { NodeNameToMetaVictims: asked };
    return {
      NodeNameToMetaVictims: await this.#options.preemption.correct(
        { ...pod, demand: pod.demand },
        asked,
      ),
    };
  }

  async #judgeAll(pod: Preemptor, names: readonly string[]): Promise<Judged> {
    const judge = this.#options.judges.of(pod.demand);
    const fitting: string[][] = Array.from({ length: MOST_SCORE + 1 }, () => []);
    const failed: Record<string, string> = {};
    const unresolvable: Record<string, string> = {};
    const steps = new Steps();
    let turn = performance.now();
    for (const name of names) {
      if (performance.now() - turn > TURN) {
        await othersPass();
        turn = performance.now();
      }
      const verdict = judge.judge(this.#options.cluster.node(name), pod, steps);
      if ('score' in verdict) fitting[verdict.score]?.push(name);
      else if (verdict.resolvable) failed[name] = verdict.sentence;
      else unresolvable[name] = verdict.sentence;
    }
    return { fitting: fitting.reverse().flat().slice(0, MOST_NODES), failed, unresolvable };
  }
}

/** Reasons by the name of the node. */
interface Judged {
  /** The best ones, the best first. */
  readonly fitting: string[];
  readonly failed: Record<string, string>;
  readonly unresolvable: Record<string, string>;
}
