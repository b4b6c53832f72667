import { constants } from 'node:os';

/**
 * Handles SIGINT and SIGTERM. Create it before anything else is loaded: a pod can be terminated
 * during start-up, and Node as process 1 ignores signals without a handler. Until first() is
 * called, a signal ends the process at once with the exit status of a process killed by that
 * signal.
 */
export class EndSignal {
  #onSignal: (signal: NodeJS.Signals) => void = (signal) =>
    process.exit(128 + constants.signals[signal]);

  constructor() {
    this.handle('SIGINT');
    this.handle('SIGTERM');
  }

  /** Handles a further signal in the same way. */
  handle(name: NodeJS.Signals): void {
    process.on(name, (signal) => this.#onSignal(signal));
  }

  /**
   * Resolves with the first signal. From now on the caller ends the process.
   * @param again called for each further signal
   */
  first(again: () => void = () => {}): Promise<NodeJS.Signals> {
    return new Promise((resolve) => {
      this.#onSignal = (signal) => {
        this.#onSignal = again;
        resolve(signal);
      };
    });
  }
}
