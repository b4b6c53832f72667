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

{{/* (list OPERATIONS RESOURCES) */}}
{{- define "nvidia-virtual.webhookRule" -}}
- apiGroups: [""]
  apiVersions: [v1]
  operations: [{{ index . 0 }}]
  resources: [{{ index . 1 }}]
  scope: "*"
{{- end }}

{{/*
The rest are conditions, which the API server decides by itself: a request that concerns nothing of
ours never waits for us.
A line break within an expression is a space.
*/}}
{{- define "nvidia-virtual.asksForSlots" -}}
{{ include "nvidia-virtual.asksFor" (list "nvidia-virtual/gpu") }}
{{- end }}

{{/* Whether a container requests one of the resources: a list of their names. */}}
{{- define "nvidia-virtual.asksFor" -}}
{{- $names := list -}}
{{- range . }}{{ $names = append $names (squote .) }}{{ end -}}
{{- $one := join ", " $names -}}
(object.spec.containers +
{{- print " " -}}
(has(object.spec.initContainers) ? object.spec.initContainers : [])).exists(container,
{{- print " " -}}
has(container.resources) &&
{{- print " " -}}
((has(container.resources.limits) &&
{{- print " " -}}
[{{ $one }}].exists(name, name in container.resources.limits)) ||
{{- print " " -}}
(has(container.resources.requests) &&
{{- print " " -}}
[{{ $one }}].exists(name, name in container.resources.requests))))
{{- end }}

{{/* Resources of other products that webhook.translate names. */}}
{{- define "nvidia-virtual.routedResources" -}}
{{- $names := list "nvidia-virtual/gpu" -}}
{{- with .Values.webhook.translate -}}
{{- $names = concat $names (list
  "nvidia.com/gpumem" "nvidia.com/gpumem-percentage" "nvidia.com/gpucores") -}}
{{- if has "nvidia" . }}{{ $names = append $names "nvidia.com/gpu" }}{{ end -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{- define "nvidia-virtual.asksForSlotsOrMemory" -}}
{{- $resources := include "nvidia-virtual.routedResources" . | fromJsonArray -}}
{{ include "nvidia-virtual.asksFor" $resources }} ||
{{- print " " -}}
(has(object.metadata.annotations) && 'nvidia-virtual/memory' in object.metadata.annotations)
{{- end }}

{{/* Whether an annotation differs from what it was; an object that is made had none. */}}
{{- define "nvidia-virtual.changed" -}}
(has(object.metadata.annotations) && {{ . }} in object.metadata.annotations ?
{{- print " " -}}
object.metadata.annotations[{{ . }}] : '') !=
{{- print " " -}}
(oldObject != null && has(oldObject.metadata.annotations) &&
{{- print " " -}}
{{ . }} in oldObject.metadata.annotations ? oldObject.metadata.annotations[{{ . }}] : '')
{{- end }}

{{- define "nvidia-virtual.asksOrChanges" -}}
{{- $annotations := list -}}
{{- range list "memory" "cores" "gpus" "policy" "priority" "mode" "latency" "gpu-type"
    "gpu-uuid" "placement" "trace" "suspended" "move-to" "assigned" -}}
{{- $annotations = append $annotations (printf "'nvidia-virtual/%s'" .) -}}
{{- end -}}
(request.operation == 'CREATE' && {{ include "nvidia-virtual.asksForSlots" . }}) ||
{{- print " " -}}
[{{ join ", " $annotations }}].exists(key, {{ include "nvidia-virtual.changed" "key" }})
{{- end }}

{{- define "nvidia-virtual.writesAssigned" -}}
request.userInfo.username != '{{ include "nvidia-virtual.user" (list . "scheduler") }}' &&
{{- print " " -}}
{{ include "nvidia-virtual.changed" "'nvidia-virtual/assigned'" }}
{{- end }}

{{- define "nvidia-virtual.drainsOrWritesInventory" -}}
{{ include "nvidia-virtual.changed" "'nvidia-virtual/drained-gpus'" }} ||
{{- print " " -}}
(!(request.userInfo.username == '{{ include "nvidia-virtual.user" (list . "node") }}' &&
{{- print " " -}}
(!has(request.userInfo.extra) ||
{{- print " " -}}
!('authentication.kubernetes.io/node-name' in request.userInfo.extra) ||
{{- print " " -}}
request.userInfo.extra['authentication.kubernetes.io/node-name'][0] == object.metadata.name)) &&
{{- print " " -}}
{{ include "nvidia-virtual.changed" "'nvidia-virtual/inventory'" }})
{{- end }}

{{- define "nvidia-virtual.user" -}}
system:serviceaccount:{{ (index . 0).Release.Namespace }}:{{ include "nvidia-virtual.name" . }}
{{- end }}
