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

{{- /* Labels and annotations of an object, its own and those of every object: list CONTEXT LABELS ANNOTATIONS.
       No label can hide ours, which selectors look for. */ -}}
{{- define "accelbench.marks" -}}
{{- $context := index . 0 -}}
{{- $ours := include "accelbench.selector" $context | fromYaml -}}
{{- $_ := set $ours "app.kubernetes.io/version" $context.Chart.AppVersion -}}
{{- $_ := set $ours "app.kubernetes.io/managed-by" $context.Release.Service -}}
{{- $_ := set $ours "helm.sh/chart" (printf "%s-%s" $context.Chart.Name $context.Chart.Version | replace "+" "_") -}}
labels: {{- merge $ours (index . 1) $context.Values.commonLabels | toYaml | nindent 2 }}
{{- with merge (dict) (index . 2) $context.Values.commonAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* An image by its digest, else by its tag: list CONTEXT REPOSITORY DIGEST. */ -}}
{{- define "accelbench.image" -}}
{{- $context := index . 0 -}}
{{- with $context.Values.global.imageRegistry | default $context.Values.images.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- index . 1 -}}
{{- with index . 2 }}@{{ . }}{{ else }}:{{ $context.Values.images.tag | default $context.Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- define "accelbench.pullSecrets" -}}
{{- with concat .Values.global.imagePullSecrets .Values.images.pullSecrets | uniq -}}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}
