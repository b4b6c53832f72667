import type { V1ObjectMeta } from '@kubernetes/client-node';

export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  readonly resource: { readonly group: string; readonly resource: string };
  readonly subResource?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly userInfo: {
    readonly username?: string;
    readonly extra?: Readonly<Record<string, readonly string[]>>;
  };
  readonly object: Reviewed;
  readonly oldObject?: Reviewed | null;
}

/** Pods, nodes and bindings alike. */
export interface Reviewed {
  readonly metadata?: V1ObjectMeta;
}

export interface PatchOperation {
  readonly op: 'add' | 'replace';
  readonly path: string;
  readonly value: unknown;
}

export interface AdmissionReview {
  readonly apiVersion: 'admission.k8s.io/v1';
  readonly kind: 'AdmissionReview';
  readonly response: {
    readonly uid: string;
    readonly allowed: boolean;
    readonly status?: { readonly code: number; readonly reason: string; readonly message: string };
    readonly patchType?: 'JSONPatch';
    readonly patch?: string;
  };
}

export function allowed(
  { uid }: AdmissionRequest,
  patch: readonly PatchOperation[] = [],
): AdmissionReview {
  const encoded = Buffer.from(JSON.stringify(patch)).toString('base64');
  return review({
    uid,
    allowed: true,
    ...(patch.length > 0 && { patchType: 'JSONPatch', patch: encoded }),
  });
}

/** @param problems a sentence each */
export function refused({ uid }: AdmissionRequest, problems: readonly string[]): AdmissionReview {
  return review({
    uid,
    allowed: false,
    status: { code: 422, reason: 'Invalid', message: problems.join(' ') },
  });
}

function review(response: AdmissionReview['response']): AdmissionReview {
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response };
}
