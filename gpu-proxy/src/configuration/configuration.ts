import { type Given, loadOptionsWithFile } from '@nvidia-virtual/service/configuration/load';
import { CONFIGURATION_FILE, type Configuration, NODE_OPTIONS } from './schema.js';

/** The configuration of a node. @throws ProxyError that lists all problems. */
export function loadConfiguration(given: Given): Configuration {
  return loadOptionsWithFile(NODE_OPTIONS, CONFIGURATION_FILE, given);
}
