import type { V1Pod } from '@kubernetes/client-node';
import type { Logger } from 'pino';
import { SchedulerError } from '../errors.js';
import {
  type AdmissionRequest,
  type AdmissionReview,
  allowed,
  type PatchOperation,
  refused,
} from './review.js';
import { routePod } from './routing.js';
import { type TranslationOptions, translate } from './translation.js';
import { problemsOf, type Writers } from './validation.js';

interface Asked {
  readonly request?: AdmissionRequest;
}

/** The requests of the API server, one method per path. */
export class Webhook {
  constructor(
    readonly writers: Writers,
    readonly translation: TranslationOptions,
    readonly logger: Logger,
  ) {}

  mutate(asked: Asked): AdmissionReview {
    const request = requestOf(asked);
    const given = request.object as V1Pod;
    const { pod, problems } = translate(given, this.translation);
    if (problems.length > 0) return this.#refuse(request, problems);
    const routed = routePod(pod, this.translation.slotSize);
    return allowed(request, pod === given ? routed : [...replacing(pod), ...routed]);
  }

  validate(asked: Asked): AdmissionReview {
    const request = requestOf(asked);
    const problems = problemsOf(request, this.writers, this.translation.slotSize);
    return problems.length === 0 ? allowed(request) : this.#refuse(request, problems);
  }

  #refuse(request: AdmissionRequest, problems: readonly string[]): AdmissionReview {
    const { namespace, name = request.object.metadata?.generateName, userInfo } = request;
    this.logger.info({ namespace, name, user: userInfo.username, problems }, 'refused');
    return refused(request, problems);
  }
}

function replacing({ metadata, spec }: V1Pod): PatchOperation[] {
  return [
    { op: 'add', path: '/metadata/annotations', value: metadata?.annotations },
    { op: 'add', path: '/spec', value: spec },
  ];
}

/** @throws SchedulerError REVIEW_BROKEN */
function requestOf({ request }: Asked): AdmissionRequest {
  if (!request?.uid || !request.object || !request.resource || !request.userInfo) {
    throw new SchedulerError('REVIEW_BROKEN', { reason: 'it names no object, resource or user' });
  }
  return request;
}
