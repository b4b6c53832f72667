import type { V1Pod } from '@kubernetes/client-node';
import type { SlotSize } from '@nvidia-virtual/kube-common/slot-size';
import type { Logger } from 'pino';
import { SchedulerError } from '../errors.js';
import { type AdmissionRequest, type AdmissionReview, allowed, refused } from './review.js';
import { routePod } from './routing.js';
import { problemsOf, type Writers } from './validation.js';

interface Asked {
  readonly request?: AdmissionRequest;
}

/** The requests of the API server, one method per path. */
export class Webhook {
  constructor(
    readonly writers: Writers,
    readonly slotSize: SlotSize | undefined,
    readonly logger: Logger,
  ) {}

  mutate(asked: Asked): AdmissionReview {
    const request = requestOf(asked);
    return allowed(request, routePod(request.object as V1Pod, this.slotSize));
  }

  validate(asked: Asked): AdmissionReview {
    const request = requestOf(asked);
    const problems = problemsOf(request, this.writers, this.slotSize);
    if (problems.length === 0) return allowed(request);
    const { namespace, name = request.object.metadata?.generateName, userInfo } = request;
    this.logger.info({ namespace, name, user: userInfo.username, problems }, 'refused');
    return refused(request, problems);
  }
}

/** @throws SchedulerError REVIEW_BROKEN */
function requestOf({ request }: Asked): AdmissionRequest {
  if (!request?.uid || !request.object || !request.resource || !request.userInfo) {
    throw new SchedulerError('REVIEW_BROKEN', { reason: 'it names no object, resource or user' });
  }
  return request;
}
