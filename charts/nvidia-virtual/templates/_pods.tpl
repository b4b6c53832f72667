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

{{/* 65532 is an arbitrary unprivileged user; the images require no specific one. */}}
{{- define "nvidia-virtual.unprivilegedPod" }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "nvidia-virtual.unprivilegedContainer" -}}
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

{{/* Optional: no pod waits for Redis. The kubelet adds the files once the Secret has them. */}}
{{- define "nvidia-virtual.ledgerVolumes" -}}
{{- with include "nvidia-virtual.redisSecret" . }}
- name: redis-password
  secret:
    secretName: {{ . }}
    optional: true
{{- end }}
{{- with .Values.redis.tls.existingSecret }}
- name: redis-tls
  secret:
    secretName: {{ . }}
    optional: true
{{- end }}
{{- end }}

{{/* A RoleBinding's or ClusterRoleBinding's subject: (list $ "webhook"). */}}
{{- define "nvidia-virtual.subject" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "nvidia-virtual.name" . }}
    namespace: {{ (index . 0).Release.Namespace }}
{{- end }}

{{/* Arguments for the certificate of a process that the API server calls: (list $ "webhook"). */}}
{{- define "nvidia-virtual.servingEnvironment" -}}
{{- $root := index . 0 -}}
- name: NVIDIA_VIRTUAL_NAMESPACE
  value: {{ $root.Release.Namespace }}
- name: NVIDIA_VIRTUAL_HTTP
  value: ":9402"
- name: NVIDIA_VIRTUAL_LOG_LEVEL
  value: {{ $root.Values.logLevel }}
{{- end }}
