import { constants } from 'node:os';

/**
 * What asks this process to end. A pod may be told so while it still starts, and Node as process 1
 * is deaf to it until somebody listens: made before anything else is loaded. Until somebody waits
 * for the signal there is nothing that has to end in order; the exit status is then that of a
 * program that hears of no signals, so that nobody takes what was cut short for done.
 */
export class EndSignal {
  #heard: (signal: NodeJS.Signals) => void = (signal) =>
    process.exit(128 + constants.signals[signal]);

  constructor() {
    this.hear('SIGINT');
    this.hear('SIGTERM');
  }

  /** Asks for the end, too. */
  hear(name: NodeJS.Signals): void {
    process.on(name, (signal) => this.#heard(signal));
  }

  /** From now on it is the caller who ends the process. @param again hears of further signals */
  first(again: () => void = () => {}): Promise<NodeJS.Signals> {
    return new Promise((resolve) => {
      this.#heard = (signal) => {
        this.#heard = again;
        resolve(signal);
      };
    });
  }
}
