import { Residency, type Step } from '../residency.js';
import type { State, Terms } from '../tenant.js';

export const GIB = 2 ** 30;
export const SECOND = 1000;
/** Bytes per millisecond of a direction, alone and beside the other one. H200. */
const ALONE = 55e6;
const BESIDE = 50e6;

/** A program: computes for `work` milliseconds of GPU time, then pauses for `pause`, and so on. */
export interface Workload {
  readonly id: string;
  readonly terms: Terms;
  /** Bytes; default: the quota. Read at the beginning of each round. */
  bytes?(): number;
  /** Milliseconds of GPU time of the next round. Infinity: it always computes. */
  work(): number;
  /** Milliseconds until the round after it. */
  pause?(): number;
  /** Whether a round may begin after the pause. */
  ready?(): boolean;
  /** Why its memory cannot leave now. */
  refusal?(): string | undefined;
  /** Whether the GPU has no room although it should. */
  entryFails?(): boolean;
  /** Bytes that cannot leave. */
  readonly remains?: number;
}

export interface Played {
  readonly workload: Workload;
  bytes: number;
  /** The part of them in host memory. */
  out: number;
  /** GPU time that is left of the round; 0: it pauses. */
  left: number;
  pausesUntil: number;
  state: State;
  /** It computes, or would. */
  runs: boolean;
  /** Milliseconds of GPU time. */
  done: number;
  rounds: number;
  usedAt: number;
  waitsSince: number | undefined;
  longestWait: number;
  enteredAt: number;
  entries: number;
  move: Move | undefined;
}

interface Move {
  readonly bytes: number;
  /** It goes on afterwards. */
  readonly whole: boolean;
  readonly began: number;
  /** Milliseconds until it begins to move, and bytes that are left then. */
  delay: number;
  left: number;
}

export interface Machine {
  readonly room: number;
  readonly hostMemory: number;
  /** Milliseconds until running work has ended, before memory leaves. */
  readonly drain?: () => number;
  /** Milliseconds between decisions, beside the ends of moves. */
  readonly look?: number;
}

/** Plays workloads on one GPU under the policy, in virtual time. */
export class Simulation {
  now = 0;
  readonly residency: Residency;
  readonly tenants: Played[];
  /** Milliseconds during which a tenant wanted the GPU, and during which one computed. */
  wanted = 0;
  computed = 0;
  /** Milliseconds during which a tenant wanted the GPU and none computed, by what moved then. */
  readonly lost = { nothing: 0, out: 0, in: 0, both: 0 };
  stuck: ReadonlyMap<string, string> = new Map();
  /** Called when a tenant is suspended. */
  check: (leave: Played) => void = () => {};
  /** Called after each decision. */
  checkRoom: () => void = () => {};
  #look = 0;

  constructor(
    readonly machine: Machine,
    workloads: readonly Workload[],
  ) {
    this.residency = new Residency({ ...machine, guarantee: 0.5 });
    this.tenants = workloads.map((workload) => ({
      ...{ workload, bytes: 0, out: 0, left: 0, pausesUntil: 0, state: 'out', done: 0, rounds: 0 },
      runs: false,
      usedAt: 0,
      waitsSince: undefined,
      longestWait: 0,
      enteredAt: 0,
      entries: 0,
      move: undefined,
    }));
    for (const { id, terms } of workloads) this.residency.put(id, terms, 0);
  }

  of(id: string): Played {
    const found = this.tenants.find(({ workload }) => workload.id === id);
    if (!found) throw new Error(`There is no tenant ${id}.`);
    return found;
  }

  run(milliseconds: number): void {
    const end = this.now + milliseconds;
    while (this.now < end) {
      this.#happen();
      this.#pass(Math.min(end, this.#nextEvent()) - this.now);
    }
  }

  /** Tenants whose work is on the GPU now. */
  get computing(): Played[] {
    return this.tenants.filter(({ state, left }) => state === 'resident' && left > 0);
  }

  #happen(): void {
    for (const tenant of this.tenants) {
      const { left, pausesUntil, workload } = tenant;
      if (left === 0 && this.now >= pausesUntil && workload.ready?.() !== false)
        this.#beginRound(tenant);
      const { move } = tenant;
      if (move?.delay === 0 && move.left === 0) this.#endMove(tenant, move);
    }
    if (this.now >= this.#look) this.#look = this.now + (this.machine.look ?? SECOND / 2);
    for (const tenant of this.tenants) this.#observe(tenant);
    this.#decide();
  }

  #beginRound(tenant: Played): void {
    const { workload } = tenant;
    tenant.left = Math.max(1, workload.work());
    if (tenant.state === 'resident') allocate(tenant);
    else tenant.waitsSince = this.now;
  }

  #observe({ workload, bytes, out, left, usedAt, state }: Played): void {
    const waits = state !== 'resident' && left > 0;
    const used = state === 'resident' && left > 0 ? this.now : usedAt;
    const seen = { bytes, out, waits, usedAt: used, suspended: false };
    this.residency.observe(workload.id, seen, this.now);
  }

  #decide(): void {
    const { leave, enter, stuck } = this.residency.decide(this.now);
    const leaving = leave === undefined ? undefined : this.of(leave.id);
    const entering = enter === undefined ? undefined : this.of(enter.id);
    if (leaving) this.#leave(leaving, leave as Step);
    if (entering) this.#enter(entering, enter as Step);
    if (leaving?.runs) this.check(leaving);
    this.checkRoom();
    this.stuck = stuck;
  }

  #leave(tenant: Played, { bytes: asked }: Step): void {
    const { bytes, out, workload, state } = tenant;
    const left = Math.max(0, Math.min(asked, bytes - out - (workload.remains ?? 0)));
    if (state === 'resident' && tenant.left > 0) tenant.waitsSince = this.now;
    const delay = state === 'resident' ? (this.machine.drain?.() ?? 0) : 0;
    tenant.state = 'leaving';
    tenant.runs = state === 'resident';
    tenant.move = { bytes: left, whole: false, began: this.now, delay, left };
  }

  #enter(tenant: Played, { bytes: asked }: Step): void {
    const bytes = Math.min(asked, tenant.out);
    tenant.state = 'entering';
    const whole = asked === Number.POSITIVE_INFINITY;
    tenant.move = { bytes, whole, began: this.now, delay: 0, left: bytes };
  }

  #endMove(tenant: Played, move: Move): void {
    tenant.move = undefined;
    if (tenant.state === 'leaving') this.#endLeave(tenant, move);
    else this.#endEntry(tenant, move);
    if (tenant.state === 'resident') this.#endWait(tenant);
  }

  #endLeave(tenant: Played, { bytes, began }: Move): void {
    const { id, refusal } = tenant.workload;
    const why = refusal?.();
    tenant.state = why !== undefined && tenant.runs ? 'resident' : 'out';
    if (why === undefined) {
      tenant.out += bytes;
      this.residency.left(id, { out: tenant.out, duration: this.now - began }, this.now);
    } else this.residency.refused(id, why, this.now);
  }

  #endEntry(tenant: Played, { bytes, began, whole }: Move): void {
    const { id, entryFails } = tenant.workload;
    tenant.state = 'out';
    if (entryFails?.() === true) {
      this.residency.notEntered(id, this.now);
      return;
    }
    tenant.out -= bytes;
    this.residency.entered(id, { out: tenant.out, duration: this.now - began }, this.now);
    if (!whole) return;
    tenant.state = 'resident';
    if (tenant.bytes === 0) allocate(tenant);
    tenant.enteredAt = this.now;
    tenant.entries++;
  }

  #endWait(tenant: Played): void {
    if (tenant.waitsSince !== undefined)
      tenant.longestWait = Math.max(tenant.longestWait, this.now - tenant.waitsSince);
    tenant.waitsSince = undefined;
  }

  #nextEvent(): number {
    const computing = this.computing;
    const times = this.tenants.flatMap(({ move, left, pausesUntil }) => [
      move ? this.now + (move.delay || move.left / this.#rate) : Number.POSITIVE_INFINITY,
      left === 0 && pausesUntil > this.now ? pausesUntil : Number.POSITIVE_INFINITY,
    ]);
    const ends = computing.map((tenant) => this.now + tenant.left / rate(tenant, computing));
    return Math.max(this.now + 0.01, Math.min(this.#look, ...times, ...ends));
  }

  get #moving(): keyof Simulation['lost'] {
    const moves = (state: State) =>
      this.tenants.some((one) => one.state === state && one.move?.delay === 0);
    const [out, back] = [moves('leaving'), moves('entering')];
    if (out && back) return 'both';
    return out ? 'out' : back ? 'in' : 'nothing';
  }

  /** Bytes per millisecond in each direction in which memory moves. */
  get #rate(): number {
    return this.#moving === 'both' ? BESIDE : ALONE;
  }

  #advanceMoves(milliseconds: number): void {
    const rate = this.#rate;
    for (const { move } of this.tenants) {
      if (!move) continue;
      const { delay, left } = move;
      move.delay = rest(delay - milliseconds);
      if (delay === 0) move.left = rest(left - milliseconds * rate);
    }
  }

  #pass(milliseconds: number): void {
    const computing = this.computing;
    if (computing.length > 0) this.computed += milliseconds;
    if (this.tenants.some(({ left }) => left > 0)) this.wanted += milliseconds;
    if (computing.length === 0 && this.tenants.some(({ left }) => left > 0))
      this.lost[this.#moving] += milliseconds;
    this.#advanceMoves(milliseconds);
    this.now += milliseconds;
    for (const tenant of computing) {
      const done = Math.min(tenant.left, milliseconds * rate(tenant, computing));
      tenant.done += done;
      tenant.left = tenant.left - done < 0.01 ? 0 : tenant.left - done;
      tenant.usedAt = this.now;
      if (tenant.left > 0) continue;
      tenant.rounds++;
      tenant.pausesUntil = this.now + (tenant.workload.pause?.() ?? 0);
    }
  }
}

function rest(amount: number): number {
  return amount < 0.01 ? 0 : amount;
}

function allocate(tenant: Played): void {
  tenant.bytes = tenant.workload.bytes?.() ?? tenant.workload.terms.quota;
}

/** Part of the GPU's time that a tenant gets beside others that compute, as from the arbiter. */
function rate({ workload }: Played, computing: readonly Played[]): number {
  const total = computing.reduce((sum, one) => sum + one.workload.terms.weight, 0);
  return workload.terms.weight / total;
}
