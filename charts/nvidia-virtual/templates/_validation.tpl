{{/*
GKE admits the system's critical classes outside of kube-system only with a quota for them. "yes" or
nothing.
*/}}
{{- define "nvidia-virtual.needsCriticalPodsQuota" -}}
{{- $create := .Values.criticalPodsQuota.create -}}
{{- $refused := include "nvidia-virtual.gkeRefusesCriticalPods" . -}}
{{- if or (eq $create "always") (and (eq $create "auto") $refused) }}yes{{ end -}}
{{- end }}

{{- define "nvidia-virtual.gkeRefusesCriticalPods" -}}
{{- $system := false -}}
{{- range $class := list .Values.node.priorityClassName .Values.control.priorityClassName -}}
{{- if hasPrefix "system-" $class }}{{ $system = true }}{{ end -}}
{{- end -}}
{{- if and $system
  (not .Values.priorityClass.create)
  (include "nvidia-virtual.isGke" .)
  (ne .Release.Namespace "kube-system") }}yes{{ end -}}
{{- end }}

{{/* Without a cluster, the version may be incomplete, but the caller can name APIs. */}}
{{- define "nvidia-virtual.isGke" -}}
{{- if or (contains "-gke." .Capabilities.KubeVersion.Version)
  (.Capabilities.APIVersions.Has "networking.gke.io/v1") }}yes{{ end -}}
{{- end }}

{{- define "nvidia-virtual.isOpenShift" -}}
{{- if .Capabilities.APIVersions.Has "security.openshift.io/v1" }}yes{{ end -}}
{{- end }}

{{/* Values that contradict each other or the cluster, which no schema can say. All at once. */}}
{{- define "nvidia-virtual.problems" -}}
{{- $redis := .Values.redis -}}
{{- if and $redis.enabled $redis.url }}
- redis.url is {{ $redis.url }}, and redis.enabled runs a Redis here:
  set redis.enabled=false to use the other one, or leave redis.url out.
{{- end }}
{{- if not (or $redis.enabled $redis.url) }}
- redis.enabled is false and redis.url is empty, so the ledger has no place:
  set redis.url to the Redis that holds it, or redis.enabled=true.
{{- end }}
{{- if and $redis.username (not $redis.existingSecret) }}
- redis.username is {{ $redis.username }}, and a user needs a password:
  set redis.existingSecret to the Secret that holds it.
{{- end }}
{{- if and $redis.username $redis.enabled }}
- redis.username is {{ $redis.username }}, and our own Redis has the default user only:
  leave it out, or set redis.enabled=false and redis.url.
{{- end }}
{{- if and $redis.tls.existingSecret (not (hasPrefix "rediss://" $redis.url)) }}
- redis.tls.existingSecret is {{ $redis.tls.existingSecret }}, and the connection is not encrypted:
  set redis.url to rediss://…, or leave it out.
{{- end }}
{{- if and $redis.tls.clientCertificate (not $redis.tls.existingSecret) }}
- redis.tls.clientCertificate is true, and there is no certificate:
  set redis.tls.existingSecret to the Secret that holds tls.crt and tls.key.
{{- end }}
{{- if and (eq .Values.criticalPodsQuota.create "never")
  (include "nvidia-virtual.gkeRefusesCriticalPods" .) }}
- GKE refuses pods of class {{ .Values.node.priorityClassName }}
  or {{ .Values.control.priorityClassName }} in namespace {{ .Release.Namespace }}
  without a ResourceQuota for them: set criticalPodsQuota.create=auto, or priorityClass.create=true.
{{- end }}
{{- if and .Values.monitoring.serviceMonitor
  (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor")) }}
- monitoring.serviceMonitor is true, and the cluster knows no ServiceMonitor:
  install the Prometheus Operator first, or set monitoring.serviceMonitor=false (with helm
  template: --api-versions monitoring.coreos.com/v1/ServiceMonitor).
{{- end }}
{{- if and .Values.monitoring.prometheusRule
  (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/PrometheusRule")) }}
- monitoring.prometheusRule is true, and the cluster knows no PrometheusRule:
  install the Prometheus Operator first, or set monitoring.prometheusRule=false (with helm
  template: --api-versions monitoring.coreos.com/v1/PrometheusRule).
{{- end }}
{{- if and .Values.monitoring.serviceMonitor
  .Values.networkPolicy.enabled
  (not .Values.networkPolicy.metricsFrom) }}
- monitoring.serviceMonitor is true, but networkPolicy.metricsFrom is empty, which blocks metrics:
  set networkPolicy.metricsFrom to the namespace of Prometheus, for example --set-json
  'networkPolicy.metricsFrom=[{"namespaceSelector":{"matchLabels":{
  "kubernetes.io/metadata.name":"monitoring"}}}]', or networkPolicy.enabled=false.
{{- end }}
{{- if and .Values.webhook.hostNetwork .Values.usageApi.hostNetwork
  (eq (int .Values.webhook.port) (int .Values.usageApi.port)) }}
- webhook.port and usageApi.port are both {{ .Values.webhook.port }}, and both listen in the network
  of the node: set one of the two to another port.
{{- end }}
{{- if and .Values.certManager.enabled
  (not (.Capabilities.APIVersions.Has "cert-manager.io/v1/Certificate")) }}
- certManager.enabled is true, and the cluster knows no Certificate:
  install cert-manager first, or set certManager.enabled=false (with helm
  template: --api-versions cert-manager.io/v1/Certificate).
{{- end }}
{{- if and .Values.certManager.issuer (not .Values.certManager.enabled) }}
- certManager.issuer is set, and certManager.enabled is false, so nobody asks the issuer:
  set certManager.enabled=true, or leave the issuer out.
{{- end }}
{{- /* Empty without a cluster, and for a namespace that the install makes. */}}
{{- $namespace := lookup "v1" "Namespace" "" .Release.Namespace | default dict }}
{{- $enforced := dig "metadata" "labels" "pod-security.kubernetes.io/enforce" "" $namespace }}
{{- if and .Release.IsInstall (has $enforced (list "baseline" "restricted")) }}
- PodSecurity of namespace {{ .Release.Namespace }} enforces {{ $enforced }},
  but the pods of the node access the host: kubectl label namespace {{ .Release.Namespace }}
  pod-security.kubernetes.io/enforce=privileged --overwrite
{{- end }}
{{- if and .Values.node.slotMemory (has "nvidia" .Values.webhook.translate) }}
- webhook.translate has nvidia, but with node.slotMemory a whole GPU is another number of slots on
  each model: set webhook.translate=[hami], or leave node.slotMemory out.
{{- end }}
{{- if eq .Release.Namespace "default" }}
- The namespace is default, but this product is privileged on GPU nodes:
  install it into its own namespace, with -n nvidia-virtual --create-namespace.
{{- end }}
{{- end }}
