import type { Logger } from 'pino';
import type { Cluster } from '../cluster/cluster.js';
import { type PodRecord, readPod } from '../cluster/pod.js';
import { type SchedulerError, sentence } from '../errors.js';
import type { Strategy } from '../placement/placement.js';
import { Judge } from '../placement/verdict.js';
import type { Binder } from './binder.js';
import type { BindArgs, BindResult, ExtenderArgs, FilterResult, PreemptionArgs, PreemptionResult, PrioritizeResult } from './messages.js';
import type { Preemption } from './preemption.js';

export interface ExtenderOptions {
  readonly cluster: Cluster;
  readonly strategy: Strategy;
  readonly binder: Binder;
  readonly preemption: Preemption;
  /** Undefined once all nodes and pods are known. */
  readonly condition: () => string | undefined;
  readonly logger: Logger;
}

/** What kube-scheduler asks, one method for each verb. */
export class Extender {
  readonly #options: ExtenderOptions;

  constructor(options: ExtenderOptions) {
    this.#options = options;
  }

  filter({ Pod, NodeNames }: ExtenderArgs): FilterResult {
    const unready = this.#options.condition();
    if (unready !== undefined) return { Error: sentence('NOT_READY', { reason: unready }) };
    if (!NodeNames) return { Error: sentence('NODES_NOT_NAMES') };
    const pod = readPod(Pod);
    if (pod === undefined) return { NodeNames };
    const { demand, problem = '' } = pod;
    if (demand === undefined)
      return { NodeNames: [], FailedAndUnresolvableNodes: Object.fromEntries(NodeNames.map((name) => [name, problem])) };
    return this.#judgeAll({ ...pod, demand }, NodeNames);
  }

  prioritize({ Pod, NodeNames }: ExtenderArgs): PrioritizeResult {
    const pod = readPod(Pod);
    if (pod?.demand === undefined) return (NodeNames ?? []).map((Host) => ({ Host, Score: 0 }));
    const { cluster, strategy } = this.#options;
    const judge = new Judge({ ...pod, demand: pod.demand }, strategy);
    return (NodeNames ?? []).map((Host) => {
      const verdict = judge.judge(cluster.node(Host));
      return { Host, Score: 'score' in verdict ? verdict.score : 0 };
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
    const pod = readPod(Pod);
    const asked = NodeNameToMetaVictims ?? {};
    if (pod?.demand === undefined) return { NodeNameToMetaVictims: asked };
    return { NodeNameToMetaVictims: await this.#options.preemption.correct({ ...pod, demand: pod.demand }, asked) };
  }

  #judgeAll(pod: PodRecord & { readonly demand: NonNullable<PodRecord['demand']> }, names: readonly string[]): FilterResult {
    const { cluster, strategy } = this.#options;
    const judge = new Judge(pod, strategy);
    const NodeNames: string[] = [];
    const FailedNodes: Record<string, string> = {};
    const FailedAndUnresolvableNodes: Record<string, string> = {};
    for (const name of names) {
      const verdict = judge.judge(cluster.node(name));
      if ('score' in verdict) NodeNames.push(name);
      else (verdict.resolvable ? FailedNodes : FailedAndUnresolvableNodes)[name] = verdict.sentence;
    }
    return { NodeNames, FailedNodes, FailedAndUnresolvableNodes };
  }
}
