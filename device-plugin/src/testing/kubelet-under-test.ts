import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import {
  type Client,
  type ClientReadableStream,
  credentials,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadPodResources } from '@nvidia-virtual/kube-common/pod-resources';
import {
  type AllocateResponse,
  type ContainerDevices,
  type Device,
  type DevicePluginOptions,
  loadDevicePluginProtocol,
  type RegisterRequest,
} from '../protocol.js';

type Answered<T> = (error: ServiceError | null, answer: T) => void;
type Plugin = Client & {
  getDevicePluginOptions(request: object, callback: Answered<DevicePluginOptions>): void;
  allocate(request: object, callback: Answered<AllocateResponse>): void;
  listAndWatch(request: object): ClientReadableStream<{ readonly devices: readonly Device[] }>;
};

/** A registered plugin. */
interface Connected {
  readonly registration: RegisterRequest;
  readonly options: DevicePluginOptions;
  readonly client: Plugin;
  readonly stream: ClientReadableStream<unknown>;
  /** The received lists, oldest first. */
  readonly lists: (readonly Device[])[];
}

/**
 * Stand-in for the kubelet, with the real protocol. It removes all sockets when it starts, connects
 * to plugins that register, and watches their lists. When a stream ends, it drops the current
 * registration of the resource.
 */
export class KubeletUnderTest {
  readonly root: string;
  readonly registrations: RegisterRequest[] = [];
  /** The devices of other plugins in the pod resources API. */
  allocatable: readonly ContainerDevices[] = [];
  readonly #podResources: boolean;
  #servers: Server[] = [];
  #plugins = new Map<string, Connected>();

  constructor(root: string, { podResources }: { readonly podResources: boolean }) {
    this.root = root;
    this.#podResources = podResources;
    mkdirSync(this.pluginDirectory, { recursive: true });
    mkdirSync(path.join(root, 'pod-resources'), { recursive: true });
  }

  get pluginDirectory(): string {
    return path.join(this.root, 'device-plugins');
  }

  async start(): Promise<void> {
    for (const entry of readdirSync(this.pluginDirectory, { withFileTypes: true }))
      if (entry.isSocket()) rmSync(path.join(this.pluginDirectory, entry.name));
    const register: handleUnaryCall<RegisterRequest, object> = ({ request }, callback) => {
      this.registrations.push(request);
      void this.#connect(request).then(() => callback(null, {}), callback);
    };
    await this.#serve(
      loadDevicePluginProtocol().Registration.service,
      { register },
      path.join(this.pluginDirectory, 'kubelet.sock'),
    );
    if (this.#podResources) await this.#servePodResources();
  }

  /** Closes all connections. The files stay, as after a kill. */
  stop(): void {
    const plugins = [...this.#plugins.values()];
    this.#plugins.clear();
    plugins.forEach(disconnect);
    for (const server of this.#servers) server.forceShutdown();
    this.#servers = [];
  }

  async restart(): Promise<void> {
    this.stop();
    await this.start();
  }

  /** Undefined while no plugin has registered the resource. */
  plugin(resource = 'nvidia-virtual/gpu'): Connected | undefined {
    return this.#plugins.get(resource);
  }

  /** The latest list of devices; empty while no plugin has registered the resource. */
  get devices(): readonly Device[] {
    return this.plugin()?.lists.at(-1) ?? [];
  }

  get healthy(): string[] {
    return this.devices.filter(({ health }) => health === 'Healthy').map(({ ID }) => ID);
  }

  get unhealthy(): string[] {
    return this.devices.filter(({ health }) => health === 'Unhealthy').map(({ ID }) => ID);
  }

  /** Allocates for one container. @throws Error with the message of the plugin */
  async allocate(
    ids: readonly string[],
  ): Promise<AllocateResponse['containerResponses'][0] & object> {
    const client = this.plugin()?.client;
    if (!client) throw new Error('no plugin is registered');
    const answer = await new Promise<AllocateResponse>((resolve, reject) =>
      client.allocate({ containerRequests: [{ devicesIds: ids }] }, (error, response) =>
        error ? reject(new Error(error.details)) : resolve(response),
      ),
    );
    return answer.containerResponses[0] as AllocateResponse['containerResponses'][0] & object;
  }

  async #connect(registration: RegisterRequest): Promise<void> {
    const Service = loadDevicePluginProtocol().DevicePlugin;
    const socket = `unix:${path.join(this.pluginDirectory, registration.endpoint)}`;
    const client = new Service(socket, credentials.createInsecure()) as unknown as Plugin;
    const options = await new Promise<DevicePluginOptions>((resolve, reject) =>
      client.getDevicePluginOptions({}, (error, answer) =>
        error ? reject(error) : resolve(answer),
      ),
    );
    const { resourceName } = registration;
    const stream = client.listAndWatch({});
    const connected: Connected = { registration, options, client, stream, lists: [] };
    this.#plugins.set(resourceName, connected);
    stream.on('data', ({ devices }) => connected.lists.push(devices));
    stream.on('error', () => {});
    stream.once('close', () => {
      const present = this.#plugins.get(resourceName);
      this.#plugins.delete(resourceName);
      if (present) disconnect(present);
    });
  }

  async #servePodResources(): Promise<void> {
    const getAllocatableResources: handleUnaryCall<object, object> = (_, callback) =>
      callback(null, { devices: this.allocatable });
    const socket = path.join(this.root, 'pod-resources', 'kubelet.sock');
    rmSync(socket, { force: true });
    await this.#serve(loadPodResources().service, { getAllocatableResources }, socket);
  }

  async #serve(
    service: Parameters<Server['addService']>[0],
    handlers: Parameters<Server['addService']>[1],
    socket: string,
  ): Promise<void> {
    const server = new Server();
    server.addService(service, handlers);
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      ),
    );
    this.#servers.push(server);
  }
}

/**
 * Closing a connection ends its streams in the kubelet's Go client. Here the stream must be
 * cancelled.
 */
function disconnect({ client, stream }: Connected): void {
  stream.cancel();
  client.close();
}
