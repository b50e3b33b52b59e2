{{- /* What the operator is told, and so is who looks whether it is at work. */ -}}
{{- define "accelbench.environment" -}}
env:
  - name: ACCELBENCH_RUNNER_IMAGE
    value: {{ include "accelbench.image" (list . .Values.images.runner .Values.images.runnerDigest) }}
  - name: ACCELBENCH_PROFILES
    value: /etc/accelbench/profiles.yaml
  - name: ACCELBENCH_POD_TEMPLATE
    value: /etc/accelbench/pod-template.yaml
  {{- with .Values.namespaces }}
  - name: ACCELBENCH_NAMESPACES
    value: {{ join "," . }}
  {{- end }}
  - name: ACCELBENCH_CLASS_NAME
    value: {{ .Values.className | quote }}
  - name: ACCELBENCH_LEASE
    value: {{ .Release.Namespace }}/{{ include "accelbench.fullname" . }}
  - name: ACCELBENCH_RUNS_HISTORY_LIMIT
    value: {{ .Values.runs.historyLimit | int64 | quote }}
  - name: ACCELBENCH_RESULTS_PER_CASE
    value: {{ .Values.results.perCase | int64 | quote }}
  - name: ACCELBENCH_RESULTS_TOTAL
    value: {{ .Values.results.total | int64 | quote }}
  - name: ACCELBENCH_RESULTS_MAXIMUM_AGE_DAYS
    value: {{ .Values.results.maximumAgeDays | int64 | quote }}
  - name: ACCELBENCH_METRICS_PORT
    value: {{ .Values.metrics.port | quote }}
  - name: ACCELBENCH_METRICS_SERIES
    value: {{ .Values.metrics.series | int64 | quote }}
  {{- with .Values.metrics.tls }}
  {{- if .secretName }}
  - name: ACCELBENCH_METRICS_TLS
    value: /etc/accelbench-tls
  {{- end }}
  {{- if .clientCA }}
  - name: ACCELBENCH_METRICS_CLIENT_CA
    value: /etc/accelbench-client-ca/ca.crt
  {{- end }}
  {{- end }}
  {{- if .Values.metrics.authorization }}
  - name: ACCELBENCH_METRICS_AUTHORIZATION
    value: "true"
  {{- end }}
  - name: ACCELBENCH_HEALTH_PORT
    value: {{ .Values.health.port | quote }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.extraEnvFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* What of its files is not in the image. */ -}}
{{- define "accelbench.mounts" -}}
- {name: profiles, mountPath: /etc/accelbench, readOnly: true}
{{- with .Values.metrics.tls }}
{{- if .secretName }}
- {name: tls, mountPath: /etc/accelbench-tls, readOnly: true}
{{- end }}
{{- if .clientCA }}
- {name: client-ca, mountPath: /etc/accelbench-client-ca, readOnly: true}
{{- end }}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "accelbench.volumes" -}}
- name: profiles
  configMap: {name: {{ include "accelbench.fullname" . }}-profiles}
{{- with .Values.metrics.tls }}
{{- with .secretName }}
- name: tls
  secret: {secretName: {{ . }}}
{{- end }}
{{- with .clientCA }}
- name: client-ca
  configMap: {name: {{ . }}}
{{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* On which nodes its pods may be. */ -}}
{{- define "accelbench.placement" -}}
{{- range $field := list "nodeSelector" "tolerations" }}
{{- with get $.Values $field }}
{{ $field }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}
