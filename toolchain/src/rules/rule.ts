/** A law of this repository that a program can check. */
export interface Rule {
  /** What must hold, as a sentence. */
  readonly law: string;
  /** Where it does not hold, one sentence each. */
  check(): Promise<string[]>;
}
