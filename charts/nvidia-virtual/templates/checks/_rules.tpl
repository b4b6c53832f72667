{{/* To see whether our workloads have the pods that they should have, and why not. */}}
{{- define "nvidia-virtual.installCheckRules" -}}
- apiGroups: [apps]
  resources: [daemonsets, deployments, statefulsets]
  verbs: [list]
- apiGroups: [""]
  resources: [events]
  verbs: [list]
{{- end }}

{{/* To read what the pods on the nodes found, and to remove them. */}}
{{- define "nvidia-virtual.preflightRules" -}}
- apiGroups: [apps]
  resources: [daemonsets]
  resourceNames: [{{ include "nvidia-virtual.name" (list . "preflight") }}]
  verbs: [get, delete]
- apiGroups: [""]
  resources: [pods, events]
  verbs: [list]
{{- end }}

{{/* To see which pods have a part of a GPU. */}}
{{- define "nvidia-virtual.uninstallCheckRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- end }}

{{/* To see whether the nodes are clean, and to remove what no chart can. */}}
{{- define "nvidia-virtual.finishUninstallRules" -}}
- apiGroups: [apps]
  resources: [daemonsets]
  resourceNames:
    - {{ include "nvidia-virtual.name" (list . "node") }}
    - {{ include "nvidia-virtual.name" (list . "cleaning") }}
  verbs: [get]
{{ if .Values.uninstall.cleanNodes -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{ end -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "nvidia-virtual.name" (list . "scheduler") }}]
  verbs: [delete]
- apiGroups: [batch]
  resources: [jobs]
  resourceNames:
    - {{ include "nvidia-virtual.name" (list . "install-check") }}
    - {{ include "nvidia-virtual.name" (list . "preflight-check") }}
  verbs: [delete]
- apiGroups: [apps]
  resources: [daemonsets]
  resourceNames: [{{ include "nvidia-virtual.name" (list . "preflight") }}]
  verbs: [delete]
- apiGroups: [""]
  resources: [pods]
  resourceNames:
    - {{ include "nvidia-virtual.name" (list . "test") }}
    - {{ include "nvidia-virtual.name" (list . "test-slot") }}
  verbs: [delete]
{{- end }}

{{/* To see whether the release is gone. */}}
{{- define "nvidia-virtual.cleaningRules" -}}
- apiGroups: [apps]
  resources: [daemonsets]
  resourceNames: [{{ include "nvidia-virtual.name" (list . "node") }}]
  verbs: [get]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- end }}

{{- define "nvidia-virtual.finishUninstallClusterRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, patch]
- apiGroups: [""]
  resources: [nodes/status]
  verbs: [patch]
{{- end }}
