{{/* To see whether our workloads have the pods that they should have, and why not. */}}
{{- define "nvidia-virtual.installCheckRules" -}}
- apiGroups: [apps]
  resources: [daemonsets, deployments, statefulsets]
  verbs: [list]
- apiGroups: [""]
  resources: [events]
  verbs: [list]
{{- end }}

{{/* To see which pods have a part of a GPU. */}}
{{- define "nvidia-virtual.uninstallCheckRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- end }}

{{/* To see whether the nodes are clean, and to remove what was made at run time. */}}
{{- define "nvidia-virtual.finishUninstallRules" -}}
- apiGroups: [apps]
  resources: [daemonsets]
  resourceNames: [{{ include "nvidia-virtual.name" (list . "cleaning") }}]
  verbs: [get]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "nvidia-virtual.name" (list . "scheduler") }}]
  verbs: [delete]
{{- end }}

{{- define "nvidia-virtual.finishUninstallClusterRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, patch]
{{- end }}
