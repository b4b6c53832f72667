{{/* How a webhook is asked: (list $ PATH). */}}
{{- define "nvidia-virtual.webhookClient" -}}
{{- $root := index . 0 -}}
clientConfig:
  service:
    name: {{ include "nvidia-virtual.name" (list $root "webhook") }}
    namespace: {{ $root.Release.Namespace }}
    path: {{ index . 1 }}
admissionReviewVersions: [v1]
sideEffects: None
timeoutSeconds: 5
failurePolicy: {{ $root.Values.webhook.failurePolicy }}
{{- end }}

{{/* The API server decides this by itself, so a pod that asks for none of ours never waits for us. */}}
{{- define "nvidia-virtual.asksForSlots" -}}
- name: asks-for-slots
  expression: >-
    (object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []))
    .exists(container, has(container.resources)
    && ((has(container.resources.limits) && 'nvidia-virtual/gpu' in container.resources.limits)
    || (has(container.resources.requests) && 'nvidia-virtual/gpu' in container.resources.requests)))
{{- end }}
