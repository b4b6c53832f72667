import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Cluster } from '../cluster/cluster.js';
import { type PodRecord, readPod } from '../cluster/pod.js';
import { type SchedulerError, sentence } from '../errors.js';
import { JsonText } from '../json-service.js';
import type { Demand } from '../placement/demand.js';
import type { Strategy } from '../placement/placement.js';
import { Judge, MOST_SCORE } from '../placement/verdict.js';
import { Words } from '../words.js';
import type { Binder } from './binder.js';
import { ByteWriter } from './byte-writer.js';
import type { Eviction } from './eviction.js';
import type { BindArgs, BindResult, ExtenderArgs, FilterResult, PreemptionArgs, PreemptionResult, PrioritizeResult } from './messages.js';
import { type NodeNames, Selection } from './node-names.js';
import type { Preemption } from './preemption.js';
import type { Retry } from './retry.js';

export interface ExtenderOptions {
  readonly cluster: Cluster;
  readonly strategy: Strategy;
  readonly binder: Binder;
  readonly preemption: Preemption;
  readonly eviction: Eviction;
  readonly retry: Retry;
  /** Undefined once all nodes and pods are known. */
  readonly condition: () => string | undefined;
  readonly logger: Logger;
}

const HOST = '{"Host":';
const [COMMA, COLON] = [Words.of(','), Words.of(':')];
/** What stands between a name and the next one: each piece that is written costs time. */
const SCORES = Array.from({ length: MOST_SCORE + 1 }, (_, score) => Words.of(`,"Score":${score}},${HOST}`));

/** Kinds of pods; each may know thousands of states. */
const MOST_JUDGES = 32;

/**
 * A kube-scheduler that ends gives its lease back at once, so another one may lead while bindings that the former extender asked for are still under
 * way. They are seen, or given up, within this time, in milliseconds; it is less than kube-scheduler waits for an answer.
 */
const SUCCESSION = 5000;

/** What kube-scheduler asks, one method for each verb. */
export class Extender {
  readonly #options: ExtenderOptions;
  /** Replicas ask for the same, and so does a pod that is filtered first and then weighed. */
  readonly #judges = new Map<string, Judge>();
  /** Each answer is written into these, and copied out of them before the next one is. */
  readonly #scores = new ByteWriter();
  readonly #fitting = new ByteWriter();
  readonly #refused = { failed: new ByteWriter(), unresolvable: new ByteWriter() };
  /**
   * Of which pod and which nodes the scores are: what is weighed is what was left of the nodes that were filtered just before. The names lie in
   * `fitting`, until that is written anew.
   */
  #weighed: { readonly uid: string; readonly names: Uint8Array } | undefined;
  /** Since kube-scheduler asked for the first time: it may have become the leader just now. */
  #succession: Promise<void> | undefined;

  constructor(options: ExtenderOptions) {
    this.#options = options;
  }

  /** kube-scheduler asks about one pod after another, so the first one waits for all, and none is refused. */
  async filter(args: ExtenderArgs): Promise<FilterResult | JsonText> {
    this.#succession ??= sleep(SUCCESSION);
    await this.#succession;
    return this.#filter(args);
  }

  #filter({ Pod, NodeNames }: ExtenderArgs): FilterResult | JsonText {
    const unready = this.#options.condition();
    if (unready !== undefined) return { Error: sentence('NOT_READY', { reason: unready }) };
    if (!NodeNames) return { Error: sentence('NODES_NOT_NAMES') };
    const pod = readPod(Pod);
    if (pod?.demand === undefined) return filterText(this.#judgeNone(pod?.problem, NodeNames));
    const { demand } = pod;
    const judged = this.#judgeAll(pod, this.#judgeFor(demand), NodeNames);
    if (judged.fitting.empty) this.#options.retry.rejected({ ...pod, demand });
    const mayPreempt = Pod.spec?.preemptionPolicy !== 'Never' && judged.fitting.empty;
    if (mayPreempt && judged.resolvable.length > 0) this.#options.eviction.consider({ ...pod, demand }, this.#namesOf(judged.resolvable));
    this.#weighed = { uid: pod.uid, names: judged.fitting.bytes };
    return filterText(judged);
  }

  prioritize({ Pod, NodeNames }: ExtenderArgs): PrioritizeResult | JsonText {
    const pod = readPod(Pod);
    const known = this.#weighed;
    if (known === undefined || known.uid !== pod?.uid || !NodeNames?.equals(known.names)) this.#weigh(pod, NodeNames);
    if (this.#scores.length === 0) return [];
    return new JsonText('[', HOST, this.#scores.written.subarray(0, -`,${HOST}`.length), ']');
  }

  async bind(args: BindArgs): Promise<BindResult> {
    const { binder, condition, logger } = this.#options;
    const unready = condition();
    if (unready !== undefined) return { Error: sentence('NOT_READY', { reason: unready }) };
    this.#weighed = undefined; // nodes are fuller from now on
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

  /** Of nodes that nobody asked to filter just before, or of other ones. */
  #weigh(pod: PodRecord | undefined, names: NodeNames | undefined): void {
    const judge = pod?.demand && this.#judgeFor(pod.demand);
    this.#weighed = undefined;
    this.#scores.clear();
    const nodes = this.#options.cluster.table.current;
    names?.visit(nodes, (index, start, end) => {
      const verdict = judge?.judgeAt(nodes, index, pod as PodRecord);
      this.#addScore(names, start, end, verdict && 'score' in verdict ? verdict.score : 0);
    });
  }

  #addScore({ words }: NodeNames, start: number, end: number, score: number): void {
    this.#scores.write(words, start, end);
    this.#scores.write(SCORES[score] as Words);
  }

  #judgeAll(pod: PodRecord, judge: Judge, names: NodeNames): Judged {
    const judged = this.#nothingJudged(names);
    this.#scores.clear();
    const nodes = this.#options.cluster.table.current;
    names.visit(nodes, (index, start, end) => {
      const verdict = judge.judgeAt(nodes, index, pod);
      if ('score' in verdict) {
        judged.fitting.add(start, end);
        this.#addScore(names, start, end, verdict.score);
      } else if (!verdict.resolvable) judged.unresolvable.add(start, end, verdict.quoted);
      else {
        judged.failed.add(start, end, verdict.quoted);
        judged.resolvable.push(index);
      }
    });
    return judged;
  }

  /** Of a pod that asks for nothing of ours every node is as good; of one that contradicts itself, none. */
  #judgeNone(problem: string | undefined, names: NodeNames): Judged {
    const judged = this.#nothingJudged(names);
    const reason = problem === undefined ? undefined : Words.of(JSON.stringify(problem));
    names.visit(this.#options.cluster.table.current, (_, start, end) => {
      if (reason === undefined) judged.fitting.add(start, end);
      else judged.unresolvable.add(start, end, reason);
    });
    return judged;
  }

  #nothingJudged(names: NodeNames): Judged {
    const { failed, unresolvable } = this.#refused;
    this.#weighed = undefined;
    return {
      fitting: new Selection(names, this.#fitting),
      failed: new Refusals(names, failed),
      unresolvable: new Refusals(names, unresolvable),
      resolvable: [],
    };
  }

  #namesOf(indices: readonly number[]): string[] {
    const nodes = this.#options.cluster.table.current;
    return indices.flatMap((index) => nodes.node(index)?.name ?? []);
  }

  #judgeFor(demand: Demand): Judge {
    const key = JSON.stringify(demand.request);
    const known = this.#judges.get(key);
    if (known) return known;
    const [oldest] = this.#judges.keys();
    if (this.#judges.size === MOST_JUDGES && oldest !== undefined) this.#judges.delete(oldest);
    const judge = new Judge(demand, this.#options.strategy);
    this.#judges.set(key, judge);
    return judge;
  }
}

/** Parts of an answer, as JSON has them. */
interface Judged {
  readonly fitting: Selection;
  readonly failed: Refusals;
  readonly unresolvable: Refusals;
  /** Indices of the nodes in `failed`. */
  readonly resolvable: number[];
}

/** Some of the names of a list, each with a reason. */
class Refusals {
  readonly #names: NodeNames;
  readonly #list: ByteWriter;

  constructor(names: NodeNames, list: ByteWriter) {
    this.#names = names;
    this.#list = list;
    list.clear();
  }

  add(start: number, end: number, reason: Words): void {
    if (this.#list.length > 0) this.#list.write(COMMA);
    this.#list.write(this.#names.words, start, end);
    this.#list.write(COLON);
    this.#list.write(reason);
  }

  /** What stands between the brackets of an object of them. */
  get bytes(): Uint8Array {
    return this.#list.written;
  }
}

/** A FilterResult. */
function filterText({ fitting, failed, unresolvable }: Judged): JsonText {
  const reasons = ['],"FailedNodes":{', failed.bytes, '},"FailedAndUnresolvableNodes":{', unresolvable.bytes, '}}'];
  return new JsonText('{"NodeNames":[', fitting.bytes, ...reasons);
}
