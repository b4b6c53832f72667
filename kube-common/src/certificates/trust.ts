import { ApiError, type ApiServer } from '../api-server.js';

/** An object by which the API server knows whom it may trust. */
export interface CaBundleHolder {
  readonly kind: 'MutatingWebhookConfiguration' | 'ValidatingWebhookConfiguration' | 'APIService';
  readonly name: string;
}

interface Held {
  readonly webhooks?: readonly {
    readonly name: string;
    readonly clientConfig: { readonly caBundle?: string };
  }[];
  readonly spec?: { readonly caBundle?: string };
}

const PATHS: Record<CaBundleHolder['kind'], string> = {
  MutatingWebhookConfiguration:
    '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
  ValidatingWebhookConfiguration:
    '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
  APIService: '/apis/apiregistration.k8s.io/v1/apiservices',
};

/**
 * Lets the object say this bundle, all of its webhooks. Nothing is written where it does already.
 * @returns whether it was written.
 * @throws ApiError
 */
export async function trust(
  api: ApiServer,
  holder: CaBundleHolder,
  bundle: string,
): Promise<boolean> {
  const path = `${PATHS[holder.kind]}/${holder.name}`;
  const caBundle = Buffer.from(bundle).toString('base64');
  const held = await find(api, path, holder);
  const patch = patchFor(holder, held, caBundle);
  if (patch === undefined) return false;
  await api.request({
    method: 'PATCH',
    path,
    body: patch,
    contentType: 'application/strategic-merge-patch+json',
  });
  return true;
}

async function find(api: ApiServer, path: string, { kind, name }: CaBundleHolder): Promise<Held> {
  try {
    return await api.request<Held>({ path });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    throw new ApiError(
      `There is no ${kind} ${name}: install the chart, which creates it, or name another one.`,
      404,
    );
  }
}

function patchFor(
  { kind }: CaBundleHolder,
  { webhooks = [], spec }: Held,
  caBundle: string,
): object | undefined {
  if (kind === 'APIService')
    return spec?.caBundle === caBundle ? undefined : { spec: { caBundle } };
  const other = webhooks.filter(({ clientConfig }) => clientConfig.caBundle !== caBundle);
  return other.length === 0
    ? undefined
    : { webhooks: other.map(({ name }) => ({ name, clientConfig: { caBundle } })) };
}
