{{/*
A hook that is removed when it has succeeded; a failed one stays for inspection:
(dict "events" "post-install,post-upgrade" "weight" 0).
*/}}
{{- define "nvidia-virtual.hook" -}}
helm.sh/hook: {{ .events }}
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/*
One run of a command of ours, with an account of its own whose rights last as long as it does:
(dict "root" $ "name" "install-check" "events" … "command" LIST "rules" RULES "clusterRules" RULES)
*/}}
{{- define "nvidia-virtual.hookJob" -}}
{{- $part := list .root .name -}}
{{- include "nvidia-virtual.hookAccount" . }}
---
apiVersion: batch/v1
kind: Job
metadata:
  {{- include "nvidia-virtual.metadata" $part | nindent 2 }}
  annotations:
    {{- include "nvidia-virtual.hook" (dict "events" .events "weight" 1) | nindent 4 }}
    helm.sh/hook-output-log-policy: hook-failed
spec:
  backoffLimit: 0
  # No activeDeadlineSeconds: it would count the time in which the image is pulled. The commands
  # limit their own, and end with a sentence; Helm waits for as long as --timeout says.
  # What failed can be looked at for an hour.
  ttlSecondsAfterFinished: 3600
  template:
    metadata:
      labels:
        {{- include "nvidia-virtual.labels" $part | nindent 8 }}
    spec:
      {{- include "nvidia-virtual.commandPod" . | nindent 6 }}
{{- end }}

{{/* The pod of such a command. */}}
{{- define "nvidia-virtual.commandPod" -}}
restartPolicy: Never
serviceAccountName: {{ include "nvidia-virtual.name" (list .root .name) }}
{{- include "nvidia-virtual.pullSecrets" .root }}
{{- include "nvidia-virtual.unprivilegedPod" .root }}
{{- include "nvidia-virtual.placement" .root.Values.control }}
containers:
  - name: {{ .name }}
    image: {{ include "nvidia-virtual.controlImage" .root }}
    command:
      - nvidia-virtual-release-hooks
      {{- toYaml .command | nindent 6 }}
      - --namespace={{ .root.Release.Namespace }}
    {{- include "nvidia-virtual.unprivilegedContainer" .root | nindent 4 }}
    {{- include "nvidia-virtual.hookResources" .root | nindent 4 }}
{{- end }}

{{- define "nvidia-virtual.hookResources" -}}
resources:
  requests: {cpu: 10m, memory: 64Mi}
  limits: {memory: 256Mi}
{{- end }}

{{/*
The container of a DaemonSet whose init container does the work, because its pods cannot end by
themselves: (list $ "checked").
*/}}
{{- define "nvidia-virtual.idleContainer" -}}
- name: {{ index . 1 }}
  image: {{ include "nvidia-virtual.nodeImage" (index . 0) }}
  command: [node, --eval, "setInterval(() => {}, 3600000)"]
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  {{- include "nvidia-virtual.hookResources" . | nindent 2 }}
{{- end }}

{{- define "nvidia-virtual.hookAccount" -}}
{{- $part := list .root .name -}}
{{- $hook := include "nvidia-virtual.hook" (dict "events" .events "weight" 0) -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "nvidia-virtual.metadata" $part | nindent 2 }}
  annotations:
    {{- $hook | nindent 4 }}
{{- with .rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  {{- include "nvidia-virtual.metadata" $part | nindent 2 }}
  annotations:
    {{- $hook | nindent 4 }}
rules:
  {{- . | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "nvidia-virtual.metadata" $part | nindent 2 }}
  annotations:
    {{- $hook | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "nvidia-virtual.name" $part }}
{{ include "nvidia-virtual.subject" $part }}
{{- end }}
{{- with .clusterRules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  {{- include "nvidia-virtual.clusterMetadata" $part | nindent 2 }}
  annotations:
    {{- $hook | nindent 4 }}
rules:
  {{- . | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  {{- include "nvidia-virtual.clusterMetadata" $part | nindent 2 }}
  annotations:
    {{- $hook | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "nvidia-virtual.name" $part }}
{{ include "nvidia-virtual.subject" $part }}
{{- end }}
{{- end }}
