{{- define "injectd.labels" -}}
{app.kubernetes.io/name: injectd, app.kubernetes.io/instance: {{ .Release.Name | quote }}, app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}, app.kubernetes.io/managed-by: {{ .Release.Service | quote }}}
{{- end }}

{{- define "injectd.selector" -}}
{app.kubernetes.io/name: injectd, app.kubernetes.io/instance: {{ .Release.Name | quote }}}
{{- end }}

{{- define "injectd.account" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

{{- define "injectd.subjects" -}}
[{kind: ServiceAccount, name: {{ .Values.serviceAccount.name | default .Release.Name }}, namespace: {{ .Release.Namespace }}}]
{{- end }}

{{- /* Names of all webhook configurations that may exist, separated by commas. */}}
{{- define "injectd.configurations" -}}
{{ .Release.Name }}-linkerd,{{ .Release.Name }}-custom
{{- range .Values.istio.tags }},{{ $.Release.Name }}-tag-{{ .tag }}{{ end }}
{{- end }}

{{- /* A list with one webhook: dict "root" "defaults" "webhook" "caBundle". */}}
{{- define "injectd.webhook" -}}
{{- $service := dict "name" .root.Release.Name "namespace" .root.Release.Namespace "port" (int .root.Values.service.port) }}
{{- $webhook := mergeOverwrite (deepCopy .root.Values.webhookDefaults) (deepCopy .defaults) (deepCopy .overrides) }}
{{- $client := deepCopy ($webhook.clientConfig | default dict) }}
{{- if not (hasKey $client "url") }}
{{- $client = mergeOverwrite (dict "service" (mergeOverwrite $service (dict "path" .path))) $client }}
{{- if and .caBundle (not (hasKey $client "caBundle")) }}
{{- $client = mergeOverwrite $client (dict "caBundle" .caBundle) }}
{{- end }}
{{- end }}
{{- toYaml (list (mergeOverwrite $webhook (dict "clientConfig" $client))) }}
{{- end }}

{{- define "injectd.webhookMetadata" -}}
{{- $annotations := deepCopy .root.Values.webhookAnnotations }}
{{- $values := .root.Values.certificates }}
{{- if and (eq $values.source "secret") $values.certManagerCertificate }}
{{- $annotations = mergeOverwrite (dict "cert-manager.io/inject-ca-from" $values.certManagerCertificate) $annotations }}
{{- end }}
{{- $labels := dict "app.kubernetes.io/name" "injectd" "app.kubernetes.io/instance" .root.Release.Name "app.kubernetes.io/version" .root.Chart.AppVersion "app.kubernetes.io/managed-by" .root.Release.Service }}
{{- $metadata := dict "name" .name "labels" (mergeOverwrite $labels .labels (deepCopy .root.Values.webhookLabels)) }}
{{- if $annotations }}
{{- $metadata = mergeOverwrite $metadata (dict "annotations" $annotations) }}
{{- end }}
{{- toYaml (dict "apiVersion" "admissionregistration.k8s.io/v1" "kind" "MutatingWebhookConfiguration" "metadata" $metadata) }}
{{- end }}
