{{/*
Placement of the node's pod: it leaves a node whose driver the GPU Operator replaces, because
processes that use the driver keep its modules in the kernel. Terms of a node selector are
alternatives, so each one gets the condition.
*/}}
{{- define "nvidia-virtual.nodePlacement" }}
{{- $states := list "pod-restart-required" "validation-required" "upgrade-failed" }}
{{- $label := "nvidia.com/gpu-driver-upgrade-state" }}
{{- $condition := dict "key" $label "operator" "NotIn" "values" $states }}
{{- $conditions := concat (list $condition) (.conditions | default list) }}
{{- $affinity := deepCopy (.affinity | default dict) }}
{{- $nodes := $affinity.nodeAffinity | default dict }}
{{- $required := $nodes.requiredDuringSchedulingIgnoredDuringExecution | default dict }}
{{- $terms := list }}
{{- range $required.nodeSelectorTerms | default (list dict) }}
{{- $expressions := concat (.matchExpressions | default list) $conditions }}
{{- $terms = append $terms (mergeOverwrite . (dict "matchExpressions" $expressions)) }}
{{- end }}
{{- $_ := set $required "nodeSelectorTerms" $terms }}
{{- $_ := set $nodes "requiredDuringSchedulingIgnoredDuringExecution" $required }}
{{- $_ := set $affinity "nodeAffinity" $nodes }}
{{- include "nvidia-virtual.placement" (merge (dict "affinity" $affinity) .) }}
{{- end }}

{{/*
Which nodes have the profile, or none of all profiles: (list $ NAME). Conditions of node affinity.
*/}}
{{- define "nvidia-virtual.profileConditions" -}}
{{- $all := keys (index . 0).Values.node.profiles | sortAlpha -}}
{{- with index . 1 }}
- {key: nvidia-virtual/profile, operator: In, values: [{{ . }}]}
{{- else with $all }}
- {key: nvidia-virtual/profile, operator: NotIn, values: {{ toJson . }}}
{{- end }}
{{- end }}

{{/* What all containers of a node's pod are told. */}}
{{- define "nvidia-virtual.nodeEnvironment" -}}
- name: NVIDIA_VIRTUAL_NODE
  valueFrom:
    fieldRef: {fieldPath: spec.nodeName}
- name: NVIDIA_VIRTUAL_STATE
  value: {{ .Values.node.directory }}/state
- name: NVIDIA_VIRTUAL_LOG_LEVEL
  value: {{ .Values.logLevel }}
{{- end }}

{{- define "nvidia-virtual.versionsEnvironment" -}}
- name: NVIDIA_VIRTUAL_VERSIONS
  value: {{ .Values.node.directory }}/versions
{{- end }}

{{- define "nvidia-virtual.pluginEnvironment" -}}
{{ include "nvidia-virtual.versionsEnvironment" . }}
{{ include "nvidia-virtual.checkEnvironment" . }}
- name: NVIDIA_VIRTUAL_HTTP
  value: ":9401"
- name: NVIDIA_VIRTUAL_NVIDIA_SMI
  value: {{ .Values.node.nvidiaSmi | quote }}
- name: NVIDIA_VIRTUAL_PRELOAD
  value: {{ .Values.node.preload | quote }}
{{- end }}

{{/* For containers that check whether the node can serve GPUs. */}}
{{- define "nvidia-virtual.checkEnvironment" -}}
- name: NVIDIA_VIRTUAL_KUBELET_ROOT
  value: {{ .Values.node.kubeletRoot }}
- name: NVIDIA_VIRTUAL_BACKEND
  value: {{ .Values.node.backend }}
{{- with .Values.node.allow }}
- name: NVIDIA_VIRTUAL_ALLOW
  value: {{ join "," . }}
{{- end }}
# Asked for as any pod could: if GPUs come in by that, no slots are offered.
- name: NVIDIA_VISIBLE_DEVICES
  value: all
{{- end }}

{{- define "nvidia-virtual.checkMounts" -}}
- name: pod-resources
  mountPath: {{ .Values.node.kubeletRoot }}/pod-resources
  readOnly: true
- name: plugins-registry
  mountPath: {{ .Values.node.kubeletRoot }}/plugins_registry
  readOnly: true
# Whether SELinux is enforcing, and which cgroups there are.
- name: file-systems
  mountPath: /host/sys/fs
  readOnly: true
{{- end }}

{{- define "nvidia-virtual.checkVolumes" -}}
- name: device-plugins
  hostPath: {path: {{ .Values.node.kubeletRoot }}/device-plugins, type: Directory}
- name: pod-resources
  hostPath: {path: {{ .Values.node.kubeletRoot }}/pod-resources, type: Directory}
# Where NVIDIA's DRA driver would be, if it served the same GPUs.
- name: plugins-registry
  hostPath: {path: {{ .Values.node.kubeletRoot }}/plugins_registry, type: DirectoryOrCreate}
- name: file-systems
  hostPath: {path: /sys/fs, type: Directory}
{{- end }}

{{- define "nvidia-virtual.proxyEnvironment" -}}
{{- $node := .Values.node -}}
- name: NVIDIA_VIRTUAL_KUBERNETES_ENABLED
  value: "true"
- name: NVIDIA_VIRTUAL_KUBERNETES_KUBELET_ROOT
  value: {{ $node.kubeletRoot }}
- name: NVIDIA_VIRTUAL_KUBERNETES_VERSIONS
  value: {{ $node.directory }}/versions
- name: NVIDIA_VIRTUAL_KUBERNETES_DRIVER_ROOT
  value: {{ $node.driverRoot }}
- name: NVIDIA_VIRTUAL_SLOTS_PER_GPU
  value: {{ $node.slotsPerGpu | quote }}
{{- with $node.slotMemory }}
- name: NVIDIA_VIRTUAL_SLOT_MEMORY
  value: {{ . }}
{{- end }}
- name: NVIDIA_VIRTUAL_BACKEND
  value: {{ $node.backend }}
{{- with $node.gpus }}
- name: NVIDIA_VIRTUAL_GPU
  value: {{ join "," . | quote }}
{{- end }}
{{- with $node.gpuModes }}
- name: NVIDIA_VIRTUAL_GPU_MODE
  value: {{ include "nvidia-virtual.perGpu" . | quote }}
{{- end }}
- name: NVIDIA_VIRTUAL_WARM_WORKERS
  value: {{ $node.warmWorkers | quote }}
- name: NVIDIA_VIRTUAL_WINDOW
  value: {{ $node.window }}
- name: NVIDIA_VIRTUAL_OVERRUN_LIMIT
  value: {{ $node.overrunLimit }}
- name: NVIDIA_VIRTUAL_GUARANTEED_SHARE
  value: {{ $node.guaranteedShare | quote }}
- name: NVIDIA_VIRTUAL_MANAGED_MEMORY
  value: {{ $node.managedMemory }}
{{- if ne (toString $node.hostMemory) "" }}
- name: NVIDIA_VIRTUAL_HOST_MEMORY
  value: {{ $node.hostMemory | quote }}
{{- end }}
- name: NVIDIA_VIRTUAL_HUGE_PAGES
  value: {{ $node.hugePages | quote }}
- name: NVIDIA_VIRTUAL_MOVABLE
  value: {{ $node.movable | quote }}
- name: NVIDIA_VIRTUAL_OVERSUBSCRIPTION
  value: {{ $node.oversubscription | quote }}
- name: NVIDIA_VIRTUAL_WORKER_UIDS
  value: {{ $node.workerUids }}
- name: NVIDIA_VIRTUAL_LIMITS_SESSIONS
  value: {{ int64 $node.limits.sessions | quote }}
- name: NVIDIA_VIRTUAL_LIMITS_PINNED_MEMORY
  value: {{ $node.limits.pinnedMemory }}
- name: NVIDIA_VIRTUAL_LIMITS_THREADS
  value: {{ int64 $node.limits.threads | quote }}
- name: NVIDIA_VIRTUAL_LIMITS_HANDLES
  value: {{ int64 $node.limits.handles | quote }}
- name: NVIDIA_VIRTUAL_HTTP
  value: ":9400"
- name: NVIDIA_VISIBLE_DEVICES
  value: void
{{- if ne $node.backend "real" }}
- name: NVIDIA_VIRTUAL_SIMULATED_GPUS
  value: {{ $node.simulated.gpus | quote }}
- name: NVIDIA_VIRTUAL_SIMULATED_MEMORY
  value: {{ $node.simulated.memory }}
{{- end }}
{{- end }}

{{/* 0=concurrent,1=exclusive */}}
{{- define "nvidia-virtual.perGpu" -}}
{{- $pairs := list -}}
{{- range $gpu, $value := . }}{{ $pairs = append $pairs (printf "%s=%s" $gpu $value) }}{{ end -}}
{{- join "," $pairs -}}
{{- end }}

{{/*
Root, because the directories of the kubelet are root's, without capabilities. On nodes with
SELinux, the usual type of containers may not use these directories.
*/}}
{{- define "nvidia-virtual.nodeRoot" -}}
# The last line of a log is the reason of a failure; `kubectl gpu-usage doctor` shows it.
terminationMessagePolicy: FallbackToLogsOnError
securityContext:
  runAsUser: 0
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
  seccompProfile:
    type: RuntimeDefault
  seLinuxOptions:
    type: spc_t
{{- end }}

{{/* gpu-proxy is not privileged; each capability has its reason. */}}
{{- define "nvidia-virtual.proxySecurity" -}}
# The last line of a log is the reason of a failure; `kubectl gpu-usage doctor` shows it.
terminationMessagePolicy: FallbackToLogsOnError
securityContext:
  runAsUser: 0
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
    add:
      - SYS_ADMIN # starts workers among the host's mounts and cgroups
      - SYS_CHROOT # the same
      - SYS_PTRACE # reads whose process connects, and its shared mappings
      - SETUID # a worker has a user of its own
      - SETGID # the same
      - CHOWN # and files of its own
      - DAC_OVERRIDE # which gpu-proxy reads
      - FOWNER # and removes
      - DAC_READ_SEARCH # finds memory files that programs may still have
      - KILL # ends it
      - SETPCAP # makes a worker from a file with the rights that it had
      - NET_ADMIN # a worker's filter of devices (cgroup v2); CRIU examines the kernel
      - SYS_RESOURCE # lets the driver pin memory, and gives a worker the oom_score_adj of its pod
  # The usual profiles of container runtimes forbid what the capabilities allow.
  appArmorProfile:
    type: Unconfined
  seLinuxOptions:
    type: spc_t
{{- end }}
