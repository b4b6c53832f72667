/** Counts what was judged, and says what failed when it does. */
export class Tally {
  #passed = 0;
  #failed = 0;
  #skipped = 0;

  /** One judgement: it passes when there is no problem. */
  judge(what: string, problems: readonly string[]): void {
    if (problems.length === 0) this.#passed++;
    else this.#failed++;
    for (const problem of problems) console.log(`${what}: ${problem}`);
  }

  skip(what: string, why: string): void {
    this.#skipped++;
    console.log(`${what}: skipped, ${why}`);
  }

  /** Prints the closing line; what the process is to exit with. */
  close(): number {
    const skipped = this.#skipped > 0 ? `, ${this.#skipped} skipped` : '';
    console.log(`${this.#passed} passed, ${this.#failed} failed${skipped}`);
    return this.#failed > 0 ? 1 : 0;
  }
}
