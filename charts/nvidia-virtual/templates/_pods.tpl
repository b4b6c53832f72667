{{/* Common parts of the pods of scheduler, webhook, usage API and Redis: (list $ "webhook"). */}}
{{- define "nvidia-virtual.controlPod" -}}
{{- $root := index . 0 -}}
{{- $control := $root.Values.control -}}
serviceAccountName: {{ include "nvidia-virtual.name" . }}
# Variables that Kubernetes makes of Services may look like ours.
enableServiceLinks: false
{{- $class := list $root $control.priorityClassName }}
priorityClassName: {{ include "nvidia-virtual.priorityClassName" $class }}
{{- include "nvidia-virtual.pullSecrets" $root }}
{{- include "nvidia-virtual.unprivilegedPod" $root }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "nvidia-virtual.selector" . | nindent 8 }}
{{- include "nvidia-virtual.placement" $control }}
{{- end }}

{{/*
The network of the pods of such a process. In the node's network two of them cannot be on one node,
so that an old one ends before its successor starts.
*/}}
{{- define "nvidia-virtual.servingNetwork" -}}
{{- if .hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- end }}

{{- define "nvidia-virtual.servingStrategy" -}}
{{- if .hostNetwork }}
strategy:
  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}
{{- end }}
{{- end }}

{{/* Our programs are of this kind, and a cluster may have nodes of several. */}}
{{- define "nvidia-virtual.platform" -}}
kubernetes.io/arch: amd64
kubernetes.io/os: linux
{{- end }}

{{/* Where pods may run: nodeSelector, affinity and tolerations of a group of values. */}}
{{- define "nvidia-virtual.placement" }}
nodeSelector:
  {{- $platform := include "nvidia-virtual.platform" . | fromYaml }}
  {{- mergeOverwrite $platform (.nodeSelector | default dict) | toYaml | nindent 2 }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "nvidia-virtual.pullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
65532 is an arbitrary unprivileged user; the images require no specific one. OpenShift gives each
namespace users of its own, and refuses others.
*/}}
{{- define "nvidia-virtual.unprivilegedPod" }}
securityContext:
  runAsNonRoot: true
  {{- if not (include "nvidia-virtual.isOpenShift" .) }}
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "nvidia-virtual.unprivilegedContainer" -}}
# The last line of a log is the reason of a failure; `kubectl gpu-usage doctor` shows it.
terminationMessagePolicy: FallbackToLogsOnError
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/*
Connection to the ledger, for containers that mount the volumes below. The password is in a file,
which is read for each connection.
*/}}
{{- define "nvidia-virtual.ledgerEnvironment" -}}
- name: NVIDIA_VIRTUAL_LEDGER_URL
  value: {{ include "nvidia-virtual.redisUrl" . | quote }}
{{- with .Values.redis.username }}
- name: NVIDIA_VIRTUAL_LEDGER_USERNAME
  value: {{ . | quote }}
{{- end }}
{{- if include "nvidia-virtual.redisSecret" . }}
- name: NVIDIA_VIRTUAL_LEDGER_PASSWORD_FILE
  value: /etc/nvidia-virtual/redis/{{ .Values.redis.passwordKey }}
{{- end }}
{{- if .Values.redis.tls.existingSecret }}
- name: NVIDIA_VIRTUAL_LEDGER_TLS_CA
  value: /etc/nvidia-virtual/redis-tls/ca.crt
{{- if .Values.redis.tls.clientCertificate }}
- name: NVIDIA_VIRTUAL_LEDGER_TLS_CERT
  value: /etc/nvidia-virtual/redis-tls/tls.crt
- name: NVIDIA_VIRTUAL_LEDGER_TLS_KEY
  value: /etc/nvidia-virtual/redis-tls/tls.key
{{- end }}
{{- end }}
{{- end }}

{{- define "nvidia-virtual.ledgerMounts" -}}
{{- if include "nvidia-virtual.redisSecret" . }}
- name: redis-password
  mountPath: /etc/nvidia-virtual/redis
  readOnly: true
{{- end }}
{{- if .Values.redis.tls.existingSecret }}
- name: redis-tls
  mountPath: /etc/nvidia-virtual/redis-tls
  readOnly: true
{{- end }}
{{- end }}

{{/*
Volumes with the ledger's credentials: (list $ true). Optional: the node's pod does not wait for
Redis, and the kubelet adds the files within 90 s once the Secret has them. Otherwise the pod starts
when they are there.
*/}}
{{- define "nvidia-virtual.ledgerVolumes" -}}
{{- $root := index . 0 -}}
{{- $optional := index . 1 -}}
{{- with include "nvidia-virtual.redisSecret" $root }}
- name: redis-password
  secret:
    secretName: {{ . }}
    items:
      - {key: {{ $root.Values.redis.passwordKey }}, path: {{ $root.Values.redis.passwordKey }}}
    optional: {{ $optional }}
{{- end }}
{{- with $root.Values.redis.tls.existingSecret }}
- name: redis-tls
  secret:
    secretName: {{ . }}
    optional: {{ $optional }}
{{- end }}
{{- end }}

{{/* A RoleBinding's or ClusterRoleBinding's subject: (list $ "webhook"). */}}
{{- define "nvidia-virtual.subject" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "nvidia-virtual.name" . }}
    namespace: {{ (index . 0).Release.Namespace }}
{{- end }}

{{/*
OpenShift admits pods that see the host only where their account may use this SCC:
(dict "root" $ "name" "node" "annotations" TEXT).
*/}}
{{- define "nvidia-virtual.privilegedScc" -}}
{{- if include "nvidia-virtual.isOpenShift" .root }}
{{- $name := printf "%s-scc" (include "nvidia-virtual.name" (list .root .name)) }}
{{- $part := list .root .name $name }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "nvidia-virtual.metadata" $part | nindent 2 }}
  {{- with .annotations }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: system:openshift:scc:privileged
{{ include "nvidia-virtual.subject" (list .root .name) }}
{{- end }}
{{- end }}

{{/*
What a process that the API server calls needs to listen: (list $ VALUES METRICS_PORT), where VALUES
has hostNetwork and port.
*/}}
{{- define "nvidia-virtual.servingEnvironment" -}}
{{- $root := index . 0 -}}
- name: NVIDIA_VIRTUAL_NAMESPACE
  value: {{ $root.Release.Namespace }}
- name: NVIDIA_VIRTUAL_LISTEN
  value: ":{{ (index . 1).port }}"
- name: NVIDIA_VIRTUAL_HTTP
  value: ":{{ index . 2 }}"
- name: NVIDIA_VIRTUAL_LOG_LEVEL
  value: {{ $root.Values.logLevel }}
{{- if $root.Values.certManager.enabled }}
- name: NVIDIA_VIRTUAL_CERTIFICATE_DIRECTORY
  value: /etc/nvidia-virtual/certificate
{{- end }}
{{- end }}

{{/* The certificate that cert-manager keeps in a Secret. */}}
{{- define "nvidia-virtual.certificateMount" -}}
{{- if .Values.certManager.enabled }}
- name: certificate
  mountPath: /etc/nvidia-virtual/certificate
  readOnly: true
{{- end }}
{{- end }}

{{/* (list $ "webhook") */}}
{{- define "nvidia-virtual.certificateVolume" -}}
{{- if (index . 0).Values.certManager.enabled }}
- name: certificate
  secret:
    secretName: {{ include "nvidia-virtual.name" . }}-tls
{{- end }}
{{- end }}

{{/* Lets cert-manager write the caBundle: (list $ "webhook"). */}}
{{- define "nvidia-virtual.injectedAuthority" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.certManager.enabled }}
annotations:
  {{- $certificate := include "nvidia-virtual.name" . }}
  cert-manager.io/inject-ca-from: {{ $root.Release.Namespace }}/{{ $certificate }}
{{- end }}
{{- end }}
