import { EventEmitter } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { nest, optionsOf, valueAt } from './option.js';
import { type Configuration, NODE_OPTIONS } from './schema.js';

export interface ConfigurationChange {
  /** Keys whose new value is in force now. */
  readonly changed: readonly string[];
  /** Keys that have another value where they are written, which comes into force when gpu-proxy starts again. */
  readonly needRestart: readonly string[];
}

/** The configuration in force. A listener of `reloaded` takes up what its part of gpu-proxy can follow; it is told even when nothing changed. */
export class ConfigurationStore extends EventEmitter<{ reloaded: [ConfigurationChange] }> {
  #current: Configuration;
  readonly #load: () => Configuration;

  /** @param load reads the configuration anew. @throws what `load` throws, the first time. */
  constructor(load: () => Configuration) {
    super();
    this.#load = load;
    this.#current = load();
  }

  get current(): Configuration {
    return this.#current;
  }

  /** Reads the configuration again. What is wrong is logged, and then the former one stays in force. */
  reload(logger: Logger): void {
    const change = this.#read(logger);
    if (change === undefined) return;
    logger.info(change, 'configuration read again');
    if (change.needRestart.length > 0)
      logger.warn({ keys: change.needRestart }, `${change.needRestart.join(', ')} changed, which needs a restart of gpu-proxy`);
    this.emit('reloaded', change);
  }

  /** SIGHUP means reload from now on. Gives the function that ends this. */
  reloadOnHangup(logger: Logger): () => void {
    const reload = () => this.reload(logger);
    process.on('SIGHUP', reload);
    return () => process.off('SIGHUP', reload);
  }

  #read(logger: Logger): ConfigurationChange | undefined {
    try {
      return this.#take(this.#load());
    } catch (error) {
      logger.error(`The configuration is refused, the former one stays in force. ${(error as Error).message}`);
      return undefined;
    }
  }

  #take(fresh: Configuration): ConfigurationChange {
    const former = this.#current;
    const different = optionsOf(NODE_OPTIONS).filter(({ key }) => !isDeepStrictEqual(valueAt(former, key), valueAt(fresh, key)));
    const changed = different.filter(({ option }) => option.details.reloadable).map(({ key }) => key);
    const needRestart = different.filter(({ option }) => !option.details.reloadable).map(({ key }) => key);
    this.#current = nest(NODE_OPTIONS, (key) => valueAt(changed.includes(key) ? fresh : former, key));
    return { changed, needRestart };
  }
}
