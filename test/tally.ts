/** Counts checks, and prints failures at once. */
export class Tally {
  #passed = 0;
  #skipped = 0;
  readonly #failures: string[] = [];

  /** Records one check. It passes if there is no problem. */
  judge(what: string, problems: readonly string[]): void {
    if (problems.length === 0) {
      this.#passed++;
      return;
    }
    const failure = problems.map((problem) => `${what}: ${problem}`).join('\n');
    this.#failures.push(failure);
    console.log(failure);
  }

  get failed(): boolean {
    return this.#failures.length > 0;
  }

  /** Records that checks were not made. */
  skip(what: string, why: string, count = 1): void {
    this.#skipped += count;
    console.log(`${what}: skipped, ${why}`);
  }

  /**
   * Prints the failures again at the end of the log, and the closing line. @returns the exit status
   */
  close(): number {
    const failed = this.#failures.length;
    if (failed > 0) console.log(`\nWhat failed:\n${this.#failures.join('\n')}\n`);
    const skipped = this.#skipped > 0 ? `, ${this.#skipped} skipped` : '';
    console.log(`${this.#passed} passed, ${failed} failed${skipped}`);
    return failed > 0 ? 1 : 0;
  }
}
