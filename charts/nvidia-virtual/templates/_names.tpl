{{/* Prefix of all names: the release's name, plus the chart's name if it is not in it. */}}
{{- define "nvidia-virtual.fullname" -}}
{{- $longer := printf "%s-nvidia-virtual" .Release.Name -}}
{{- $name := contains "nvidia-virtual" .Release.Name | ternary .Release.Name $longer -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Name of a part: (list $ "webhook"). */}}
{{- define "nvidia-virtual.name" -}}
{{- printf "%s-%s" (include "nvidia-virtual.fullname" (index . 0)) (index . 1) -}}
{{- end }}

{{/* What never changes of a part's labels: (list $ "webhook"). */}}
{{- define "nvidia-virtual.selector" -}}
app.kubernetes.io/name: nvidia-virtual
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* All labels of a part: (list $ "webhook"). */}}
{{- define "nvidia-virtual.labels" -}}
{{- $root := index . 0 -}}
{{ include "nvidia-virtual.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end }}

{{/*
Name, namespace and labels of a part's object: (list $ "webhook"), or (list $ "webhook" "own-name").
*/}}
{{- define "nvidia-virtual.metadata" -}}
name: {{ len . | eq 3 | ternary (last .) (include "nvidia-virtual.name" (slice . 0 2)) }}
namespace: {{ (index . 0).Release.Namespace }}
labels:
  {{- include "nvidia-virtual.labels" (slice . 0 2) | nindent 2 }}
{{- end }}

{{/* The same of an object that belongs to no namespace. */}}
{{- define "nvidia-virtual.clusterMetadata" -}}
name: {{ len . | eq 3 | ternary (last .) (include "nvidia-virtual.name" (slice . 0 2)) }}
labels:
  {{- include "nvidia-virtual.labels" (slice . 0 2) | nindent 2 }}
{{- end }}

{{/* An image, with a tag if its name has none: (list NAME TAG). */}}
{{- define "nvidia-virtual.image" -}}
{{- $name := index . 0 -}}
{{- $last := splitList "/" $name | last -}}
{{- $tagged := printf "%s:%s" $name (index . 1) -}}
{{- or (contains ":" $last) (contains "@" $last) | ternary $name $tagged -}}
{{- end }}

{{/* An image of ours: (list $ NAME). */}}
{{- define "nvidia-virtual.ownImage" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.images.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- $tag := $root.Values.images.tag | default $root.Chart.AppVersion -}}
{{- include "nvidia-virtual.image" (list (index . 1) $tag) -}}
{{- end }}

{{- define "nvidia-virtual.nodeImage" -}}
{{- include "nvidia-virtual.ownImage" (list . .Values.images.node) -}}
{{- end }}

{{- define "nvidia-virtual.controlImage" -}}
{{- include "nvidia-virtual.ownImage" (list . .Values.images.control) -}}
{{- end }}

{{/* v1.36.3 of v1.36.3-gke.1001 and v1.36.3+k3s1. */}}
{{- define "nvidia-virtual.schedulerImage" -}}
{{- $ofCluster := regexFind "^v[0-9]+\\.[0-9]+\\.[0-9]+" .Capabilities.KubeVersion.Version -}}
{{- $version := .Values.images.kubeSchedulerTag | default $ofCluster -}}
{{- include "nvidia-virtual.image" (list .Values.images.kubeScheduler $version) -}}
{{- end }}

{{/* A class of the system, or our own where one was asked for: (list $ CLASS). */}}
{{- define "nvidia-virtual.priorityClassName" -}}
{{- $root := index . 0 -}}
{{- $own := include "nvidia-virtual.fullname" $root -}}
{{- $root.Values.priorityClass.create | ternary $own (index . 1) -}}
{{- end }}

{{/* The Secret with the password of Redis; empty: there is none. */}}
{{- define "nvidia-virtual.redisSecret" -}}
{{- $own := include "nvidia-virtual.name" (list . "redis") -}}
{{- .Values.redis.existingSecret | default (.Values.redis.enabled | ternary $own "") -}}
{{- end }}

{{- define "nvidia-virtual.redisUrl" -}}
{{- $name := include "nvidia-virtual.name" (list . "redis") -}}
{{- $own := printf "redis://%s.%s.svc:6379" $name .Release.Namespace -}}
{{- .Values.redis.enabled | ternary $own .Values.redis.url -}}
{{- end }}
