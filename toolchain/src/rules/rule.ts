/** A rule of this repository that a program checks. */
export interface Rule {
  /** The rule as a sentence. */
  readonly law: string;
  /** Returns one sentence per violation. */
  check(): Promise<string[]>;
}
