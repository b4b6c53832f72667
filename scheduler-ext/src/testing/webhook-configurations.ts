import {
  ANNOTATION,
  DRAINED_ANNOTATION,
  INVENTORY_ANNOTATION,
  RESOURCE,
} from '@nvidia-virtual/kube-common/names';
import { type Dialect, translatedResources } from '../webhook/translation.js';
import type { Writers } from '../webhook/validation.js';

interface ConfigurationOptions {
  /** The name of both objects. */
  readonly name: string;
  readonly writers: Writers;
  readonly dialects?: readonly Dialect[];
  /** The client configuration of a path of the webhook: `{ service: … }` or `{ url: … }`. */
  readonly client: (path: string) => object;
}

interface Webhook {
  readonly name: string;
  readonly path: string;
  readonly operations: readonly string[];
  readonly resources: readonly string[];
  readonly condition: { readonly name: string; readonly expression: string };
}

const ASKS_FOR_SLOTS = asksFor([RESOURCE]);
const ASKS_FOR_MEMORY = `(has(object.metadata.annotations) && \
'${ANNOTATION.memory}' in object.metadata.annotations)`;
const POD_RESOURCES = ['pods', 'pods/status', 'pods/resize', 'pods/ephemeralcontainers'];
const BINDING_RESOURCES = ['pods/binding', 'bindings'];
const NODE_RESOURCES = ['nodes', 'nodes/status'];

/**
 * The two configurations of the webhook. The API server evaluates their match conditions: requests
 * that do not concern this product never call the webhook, and work while it is unavailable.
 */
export function webhookConfigurations({
  name,
  writers,
  dialects = [],
  client,
}: ConfigurationOptions): readonly object[] {
  const object = (kind: string, webhooks: readonly Webhook[]) => ({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind,
    metadata: { name },
    webhooks: webhooks.map((webhook) => render(webhook, client)),
  });
  const routing = {
    name: 'asks-for-slots-or-memory',
    expression: `${asksFor([RESOURCE, ...translatedResources(dialects)])} || ${ASKS_FOR_MEMORY}`,
  };
  const mutating = {
    name: 'pods.nvidia-virtual.io',
    path: '/mutate',
    operations: ['CREATE'],
    resources: ['pods'],
    condition: routing,
  };
  return [
    object('MutatingWebhookConfiguration', [mutating]),
    object('ValidatingWebhookConfiguration', validating(writers)),
  ];
}

function validating({ scheduler, plugin }: Writers): readonly Webhook[] {
  const changesOurs = `[${Object.values(ANNOTATION)
    .map((annotation) => `'${annotation}'`)
    .join(', ')}].exists(key, ${changed('key')})`;
  const writesAssigned = `request.userInfo.username != \
'${scheduler}' && ${changed(`'${ANNOTATION.assigned}'`)}`;
  const ownNode = `(!has(request.userInfo.extra) || !('authentication.kubernetes.io/node-name' in \
request.userInfo.extra) ||
 request.userInfo.extra['authentication.kubernetes.io/node-name'][0] == object.metadata.name)`;
  const writesInventory =
    `!(request.userInfo.username == ` +
    `'${plugin}' && ${ownNode}) && ${changed(`'${INVENTORY_ANNOTATION}'`)}`;
  const both = ['CREATE', 'UPDATE'];
  const pods = `(request.operation == 'CREATE' && ${ASKS_FOR_SLOTS}) || ${changesOurs}`;
  return [
    webhook('pods', both, POD_RESOURCES, {
      name: 'asks-for-slots-or-changes-our-annotations',
      expression: pods,
    }),
    webhook('bindings', ['CREATE'], BINDING_RESOURCES, {
      name: 'assigns-gpus-and-is-not-the-scheduler',
      expression: writesAssigned,
    }),
    webhook('nodes', both, NODE_RESOURCES, {
      name: 'drains-gpus-or-changes-the-inventory-and-is-not-its-plugin',
      expression: `${changed(`'${DRAINED_ANNOTATION}'`)} || (${writesInventory})`,
    }),
  ];
}

function webhook(
  subject: string,
  operations: readonly string[],
  resources: readonly string[],
  condition: Webhook['condition'],
): Webhook {
  return {
    name: `${subject}.nvidia-virtual.io`,
    path: '/validate',
    operations,
    resources,
    condition,
  };
}

/** CEL: whether a container requests one of the resources. */
function asksFor(resources: readonly string[]): string {
  const isIn = (list: string) =>
    `(has(container.resources.${list}) && [${resources.map((one) => `'${one}'`).join(', ')}]\
.exists(name, name in container.resources.${list}))`;
  return `(object.spec.containers + (has(object.spec.initContainers) ? \
object.spec.initContainers : [])).exists(container,
 has(container.resources) && (${isIn('limits')} || ${isIn('requests')}))`;
}

/** CEL: whether the annotation differs from what it was; an object that is made had none. */
function changed(key: string): string {
  const of = (object: string, more = '') =>
    `(${more}has(${object}.metadata.annotations) && ${key} in ${object}.metadata.annotations ? ` +
    `${object}.metadata.annotations[${key}] : '')`;
  return `${of('object')} != ${of('oldObject', 'oldObject != null && ')}`;
}

function render(
  { name, path, operations, resources, condition }: Webhook,
  client: ConfigurationOptions['client'],
): object {
  return {
    name,
    clientConfig: client(path),
    rules: [{ apiGroups: [''], apiVersions: ['v1'], operations, resources, scope: '*' }],
    matchConditions: [{ ...condition, expression: condition.expression.replaceAll('\n', '') }],
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    timeoutSeconds: 5,
    failurePolicy: 'Fail',
    ...(path === '/mutate' && { reinvocationPolicy: 'IfNeeded' }),
  };
}
