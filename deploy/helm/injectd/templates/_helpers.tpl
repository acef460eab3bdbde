{{- /* Names are quoted everywhere: a namespace may be called 2024, and a release no. */}}
{{- define "injectd.labels" -}}
{app.kubernetes.io/name: injectd, app.kubernetes.io/instance: {{ .Release.Name | quote }}, app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}, app.kubernetes.io/managed-by: {{ .Release.Service | quote }}}
{{- end }}

{{- define "injectd.selector" -}}
{app.kubernetes.io/name: injectd, app.kubernetes.io/instance: {{ .Release.Name | quote }}}
{{- end }}

{{- define "injectd.account" -}}
{{ .Values.serviceAccount.name | default .Release.Name | quote }}
{{- end }}

{{- define "injectd.subjects" -}}
[{kind: ServiceAccount, name: {{ template "injectd.account" . }}, namespace: {{ .Release.Namespace | quote }}}]
{{- end }}

{{- define "injectd.image" -}}
{{- $tag := printf ":%s" (.Values.image.tag | default .Chart.AppVersion) }}
{{- if .Values.image.digest }}
{{- $tag = printf "@%s" .Values.image.digest }}
{{- end }}
{{- printf "%s%s" .Values.image.repository $tag | quote }}
{{- end }}

{{- define "injectd.security" -}}
{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}
{{- with .Values.runAsUser }}, runAsUser: {{ int . }}{{ end }}
{{- with .Values.runAsGroup }}, runAsGroup: {{ int . }}{{ end }}}
{{- end }}

{{- /* Names of the webhook configurations, separated by commas; each one exists. */}}
{{- define "injectd.configurations" -}}
{{- $names := list }}
{{- if and .Values.linkerd.enabled .Values.linkerd.webhook }}
{{- $names = append $names (printf "%s-linkerd" .Release.Name) }}
{{- end }}
{{- range .Values.istio.tags }}
{{- $names = append $names (printf "%s-tag-%s" $.Release.Name .tag) }}
{{- end }}
{{- if and .Values.templates.enabled .Values.templates.webhook }}
{{- $names = append $names (printf "%s-templates" .Release.Name) }}
{{- end }}
{{- if .Values.customWebhooks }}
{{- $names = append $names (printf "%s-custom" .Release.Name) }}
{{- end }}
{{- if eq .Values.certificates.source "managed" }}
{{- $names = concat $names (.Values.certificates.managed.webhookConfigurations | default list) }}
{{- end }}
{{- join "," $names }}
{{- end }}

{{- /*
A webhook configuration. The fields of a webhook are those of the mesh, over them those of webhookDefaults, over
them those of the mesh's webhookOverrides, as values.yaml describes.
dict "root" "name" "labels" "caBundle"
     "isManaged": whether injectd writes which objects the webhooks select, in place of the chart
     "hasCondition": whether a condition leaves out injectd's own pods, in place of a selector
     "webhooks": list of dict "name" "path"
         "mesh": fields
         "overrides": fields
         "always": requirements that the selectors have in any case, by selector
*/}}
{{- define "injectd.configuration" -}}
{{- $root := .root }}
{{- $caBundle := .caBundle }}
{{- $webhooks := list }}
{{- $selectors := dict }}
{{- range .webhooks }}
{{- $webhook := dict }}
{{- range $fields := list .mesh $root.Values.webhookDefaults .overrides }}
{{- range $field, $value := $fields }}
{{- if has $field (list "namespaceSelector" "objectSelector" "clientConfig") }}
{{- $merged := get $webhook $field | default dict | deepCopy }}
{{- range $part, $partly := $value }}
{{- if eq $part "service" }}
{{- $partly = mergeOverwrite (get $merged $part | default dict) $partly }}
{{- $merged = unset $merged "url" }}
{{- else if eq $part "url" }}
{{- $merged = unset $merged "service" }}
{{- end }}
{{- $merged = set $merged $part $partly }}
{{- end }}
{{- $value = $merged }}
{{- end }}
{{- $webhook = set $webhook $field $value }}
{{- end }}
{{- end }}
{{- $notOwn := dict "key" "app.kubernetes.io/name" "operator" "NotIn" "values" (list "injectd") }}
{{- $notOwnPods := list $notOwn }}
{{- if $.hasCondition }}
{{- /* A selector has no "or": by the label alone, anyone's pod would be left out. */}}
{{- $notOwnPods = list }}
{{- $condition := printf "request.namespace != '%s' || !(has(object.metadata.labels) && 'app.kubernetes.io/name' in object.metadata.labels && object.metadata.labels['app.kubernetes.io/name'] == 'injectd')" $root.Release.Namespace }}
{{- $others := list }}
{{- if not $.isManaged }}
{{- $others = get $webhook "matchConditions" | default list }}
{{- end }}
{{- $webhook = set $webhook "matchConditions" (append $others (dict "name" "not-injectd" "expression" $condition)) }}
{{- end }}
{{- if $.isManaged }}
{{- /* Neither Helm nor a server-side apply takes back conditions of other names, as they would a selector. */}}
{{- $webhook = unset (unset $webhook "namespaceSelector") "objectSelector" }}
{{- else }}
{{- $always := dict "namespaceSelector" (.always.namespaceSelector | default list) "objectSelector" (concat (.always.objectSelector | default list) $notOwnPods) }}
{{- range $field, $requirements := $always }}
{{- $selector := get $webhook $field | default dict }}
{{- with concat ($selector.matchExpressions | default list) $requirements }}
{{- $webhook = set $webhook $field (set $selector "matchExpressions" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- $client := get $webhook "clientConfig" | default dict }}
{{- if not $client.url }}
{{- $service := dict "name" $root.Release.Name "namespace" $root.Release.Namespace "path" .path "port" (int $root.Values.service.port) }}
{{- $client = set $client "service" (mergeOverwrite $service ($client.service | default dict)) }}
{{- if and $caBundle (not $client.caBundle) }}
{{- $client = set $client "caBundle" $caBundle }}
{{- end }}
{{- end }}
{{- $webhook = set $webhook "clientConfig" $client }}
{{- $webhooks = append $webhooks (set $webhook "name" .name) }}
{{- $selected := dict }}
{{- range $field := list "namespaceSelector" "objectSelector" "matchConditions" }}
{{- with get $webhook $field }}
{{- $selected = set $selected $field . }}
{{- end }}
{{- end }}
{{- $selectors = set $selectors .name $selected }}
{{- end }}
{{- $annotations := dict }}
{{- if not .isManaged }}
{{- /* injectd compares with it: who changes a selector by hand is noticed. */}}
{{- $annotations = set $annotations "injectd.dev/selectors" (toJson $selectors) }}
{{- end }}
{{- $values := $root.Values.certificates }}
{{- if and (eq $values.source "secret") $values.certManagerCertificate }}
{{- $annotations = set $annotations "cert-manager.io/inject-ca-from" $values.certManagerCertificate }}
{{- end }}
{{- $annotations = mergeOverwrite $annotations ($root.Values.webhookAnnotations | default dict) }}
{{- $labels := dict "app.kubernetes.io/name" "injectd" "app.kubernetes.io/instance" $root.Release.Name "app.kubernetes.io/version" $root.Chart.AppVersion "app.kubernetes.io/managed-by" $root.Release.Service }}
{{- $metadata := dict "name" .name "labels" (mergeOverwrite $labels .labels ($root.Values.webhookLabels | default dict)) "annotations" $annotations }}
{{- toYaml (dict "apiVersion" "admissionregistration.k8s.io/v1" "kind" "MutatingWebhookConfiguration" "metadata" $metadata "webhooks" $webhooks) }}
{{- end }}
