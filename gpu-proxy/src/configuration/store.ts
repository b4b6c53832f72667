import { EventEmitter } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { nest, optionsOf, valueAt } from '@nvidia-virtual/service/configuration/option';
import type { Logger } from 'pino';
import { type Configuration, NODE_OPTIONS } from './schema.js';

export interface ConfigurationChange {
  /** Keys whose new value is in effect. */
  readonly changed: readonly string[];
  /**
   * Changed keys whose new value takes effect after a restart.
   */
  readonly needRestart: readonly string[];
}

/**
 * The current configuration. Listeners of `reloaded` apply the keys of their part. Emitted even if
 * nothing changed.
 */
export class ConfigurationStore extends EventEmitter<{ reloaded: [ConfigurationChange] }> {
  #current: Configuration;
  readonly #load: () => Configuration;

  /** @param load reads the configuration. @throws the error of the first `load` */
  constructor(load: () => Configuration) {
    super();
    this.#load = load;
    this.#current = load();
  }

  get current(): Configuration {
    return this.#current;
  }

  /**
   * Reloads the configuration. On error, logs it and keeps the former one.
   */
  reload(logger: Logger): void {
    const change = this.#read(logger);
    if (change === undefined) return;
    logger.info(change, 'configuration read again');
    if (change.needRestart.length > 0)
      logger.warn(
        { keys: change.needRestart },
        `${change.needRestart.join(', ')} changed, which needs a restart of gpu-proxy`,
      );
    this.emit('reloaded', change);
  }

  /** Reloads on SIGHUP. Returns a function that stops this. */
  reloadOnHangup(logger: Logger): () => void {
    const reload = () => this.reload(logger);
    process.on('SIGHUP', reload);
    return () => process.off('SIGHUP', reload);
  }

  #read(logger: Logger): ConfigurationChange | undefined {
    try {
      return this.#take(this.#load());
    } catch (error) {
      logger.error(
        `The new configuration has mistakes and is not used. ${(error as Error).message}`,
      );
      return undefined;
    }
  }

  #take(fresh: Configuration): ConfigurationChange {
    const former = this.#current;
    const different = optionsOf(NODE_OPTIONS).filter(
      ({ key }) => !isDeepStrictEqual(valueAt(former, key), valueAt(fresh, key)),
    );
    const changed = different
      .filter(({ option }) => option.details.reloadable)
      .map(({ key }) => key);
    const needRestart = different
      .filter(({ option }) => !option.details.reloadable)
      .map(({ key }) => key);
    this.#current = nest(NODE_OPTIONS, (key) =>
      valueAt(changed.includes(key) ? fresh : former, key),
    );
    return { changed, needRestart };
  }
}
