{{- define "accelbench.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "accelbench.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "accelbench.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "accelbench.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "accelbench.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "accelbench.selector" -}}
app.kubernetes.io/name: {{ include "accelbench.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "accelbench.labels" -}}
{{ include "accelbench.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* An image by its digest, else by its tag: list CONTEXT REPOSITORY DIGEST. */ -}}
{{- define "accelbench.image" -}}
{{- $context := index . 0 -}}
{{- with $context.Values.images.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- index . 1 -}}
{{- with index . 2 }}@{{ . }}{{ else }}:{{ $context.Values.images.tag | default $context.Chart.AppVersion }}{{ end -}}
{{- end -}}
