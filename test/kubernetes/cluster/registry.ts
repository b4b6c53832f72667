import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { buildah } from '@nvidia-virtual/toolchain/images/buildah';
import { buildKubernetesTools, kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import type { Daemon, DaemonOptions } from '../daemon.js';
import { freePorts } from '../ports.js';
import { REGISTRY_MIRRORS } from './places.js';

/** What ends the registry and removes its directory. */
interface Keeper {
  readonly directory: string;
  startDaemon(name: string, options: Omit<DaemonOptions, 'logFile'>): Daemon;
}

/** A registry on this machine, which can also be the mirror of public ones. */
export class TestRegistry {
  private constructor(
    /** Host and port. */
    readonly host: string,
    readonly directory: string,
  ) {}

  /** It ends with its keeper. */
  static async start(keeper: Keeper): Promise<TestRegistry> {
    await buildKubernetesTools(['crane']);
    const [port] = await freePorts(1);
    const registry = new TestRegistry(`localhost:${port}`, path.join(keeper.directory, 'registry'));
    const disk = path.join(registry.directory, 'disk');
    mkdirSync(disk, { recursive: true });
    const args = ['registry', 'serve', '--address', `127.0.0.1:${port}`, '--disk', disk];
    const daemon = keeper.startDaemon('registry', {
      program: kubernetesTool('crane'),
      args,
    });
    await daemon.serving(() =>
      fetch(`http://${registry.host}/v2/`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    return registry;
  }

  /** Serves a local image under the name that it has in a public registry. */
  async mirror(image: string, name: string): Promise<void> {
    const [host = '', ...rest] = name.split('/');
    await this.receive(image, rest.join('/'));
    const directory = path.join(REGISTRY_MIRRORS, host);
    mkdirSync(directory, { recursive: true });
    const lines = [
      `server = "https://${host}"`,
      `[host."http://${this.host}"]`,
      'capabilities = ["pull", "resolve"]',
    ];
    writeFileSync(path.join(directory, 'hosts.toml'), `${lines.join('\n')}\n`);
  }

  /** Pushes a local image to it, in the background. @param name without a host */
  async receive(image: string, name: string): Promise<void> {
    const to = `docker://${this.host}/${name}`;
    const args = ['push', '--quiet', '--tls-verify=false', image, to];
    await buildah(`image ${image} could not be pushed`, args, { inBackground: true });
  }

  /** Environment in which buildah pushes to it without TLS. */
  environment(): NodeJS.ProcessEnv {
    const file = path.join(this.directory, 'registries.conf');
    writeFileSync(file, `[[registry]]\nlocation = "${this.host}"\ninsecure = true\n`);
    return { CONTAINERS_REGISTRIES_CONF: file };
  }
}
