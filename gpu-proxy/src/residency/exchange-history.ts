/** How far back the share of time is computed, in milliseconds. */
const SPAN = 5 * 60_000;

/** The share of the last five minutes during which memory moved: a measure of thrashing. */
export class ExchangeHistory {
  /** Finished intervals, in order. */
  #intervals: { readonly from: number; readonly to: number }[] = [];
  #began: number | undefined;
  #first: number | undefined;

  /** @param moving whether memory moves from now on. */
  note(moving: boolean, now: number): void {
    this.#first ??= now;
    if (moving) this.#began ??= now;
    else if (this.#began !== undefined) {
      this.#intervals.push({ from: this.#began, to: now });
      this.#began = undefined;
    }
    this.#intervals = this.#intervals.filter(({ to }) => to > now - SPAN);
  }

  /** 0 to 1. */
  share(now: number): number {
    const from = Math.max(now - SPAN, this.#first ?? now);
    if (now <= from) return 0;
    const open = this.#began === undefined ? [] : [{ from: this.#began, to: now }];
    const moved = [...this.#intervals, ...open].reduce(
      (sum, { from: began, to }) => sum + Math.max(0, to - Math.max(began, from)),
      0,
    );
    return moved / (now - from);
  }
}
