{{/*
To the API server and to DNS. The addresses of both differ between clusters: a DNS cache of the node
has a link-local address, and the API server is in no pod. OpenShift's DNS listens at 5353.
*/}}
{{- define "nvidia-virtual.egressToCluster" -}}
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
    - {protocol: UDP, port: 5353}
    - {protocol: TCP, port: 5353}
- ports:
    {{- range .Values.networkPolicy.apiServerPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- with .Values.networkPolicy.apiServer }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* To our own Redis, or to the port of another one. */}}
{{- define "nvidia-virtual.egressToLedger" -}}
{{- if .Values.redis.enabled -}}
- ports: [{protocol: TCP, port: 6379}]
  to:
    - podSelector:
        matchLabels:
          {{- include "nvidia-virtual.selector" (list . "redis") | nindent 10 }}
{{- else -}}
{{- $port := regexFind ":[0-9]+(/|$)" .Values.redis.url | trimAll ":/" | default "6379" -}}
- ports: [{protocol: TCP, port: {{ $port }}}]
{{- end }}
{{- end }}
