{{- define "gateway.name" -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- end -}}
{{- define "gateway.labels" -}}
{{ include "gateway.selector" . }}
{{ include "gateway.versions" . }}
{{- end -}}
{{- define "gateway.versions" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
{{- define "gateway.selector" -}}
app.kubernetes.io/name: model-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* The migration's pods: no service, budget or monitor of the gateways may choose them. */ -}}
{{- define "gateway.migrationLabels" -}}
app.kubernetes.io/name: model-gateway-migration
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gateway.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "gateway.name" .) }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}{{- end -}}
{{- end -}}

{{- define "gateway.image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{- end -}}
{{- end -}}

{{- /* What the pods of the gateways and of the migration have in common. */ -}}
{{- define "gateway.pod" -}}
automountServiceAccountToken: {{ .Values.serviceAccount.automount }}
securityContext: {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "gateway.container" -}}
image: {{ include "gateway.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext: {{- toYaml .Values.securityContext | nindent 2 }}
{{- if or .Values.secret .Values.extraEnvFrom }}
envFrom:
  {{- with .Values.secret }}
  - secretRef: { name: {{ . }} }
  {{- end }}
  {{- with .Values.extraEnvFrom }}{{ toYaml . | nindent 2 }}{{- end }}
{{- end }}
volumeMounts:
  - { name: data, mountPath: /data }
  - { name: tmp, mountPath: /tmp }
  - { name: config, mountPath: /etc/gateway, readOnly: true }
  {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 2 }}{{- end }}
env:
  - { name: PORT, value: "8080" }
  - { name: DATA_DIR, value: /data }
  # One process beyond it does not start: twice as many as there may be, since old and new ones serve side by side.
  - { name: BILLING_NODES, value: {{ mul 2 (max (int .Values.replicas) (int .Values.autoscaling.maxReplicas)) | quote }} }
  - { name: S3_BUCKET, value: {{ required "bucket.name is required: without a bucket each pod would find its own files alone" .Values.bucket.name | quote }} }
  - { name: S3_ENDPOINT, value: {{ .Values.bucket.endpoint | quote }} }
  - { name: S3_REGION, value: {{ .Values.bucket.region | quote }} }
  - { name: S3_PATH_STYLE, value: {{ .Values.bucket.pathStyle | quote }} }
  {{- if .Values.metrics.enabled }}
  - { name: METRICS_LISTEN, value: "0.0.0.0:{{ .Values.metrics.port }}" }
  {{- end }}
  {{- with .Values.extraEnv }}{{ toYaml . | nindent 2 }}{{- end }}
{{- end -}}

{{- define "gateway.volumes" -}}
- { name: tmp, emptyDir: {} }
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* A sum of the secrets and maps that the variables come from, as the cluster has them; nothing where no cluster is asked. */ -}}
{{- define "gateway.variablesSum" -}}
{{- $found := dict -}}
{{- $sources := list -}}
{{- with .Values.secret }}{{ $sources = append $sources (dict "kind" "Secret" "name" .) }}{{ end -}}
{{- range .Values.extraEnvFrom -}}
{{- with .secretRef }}{{ $sources = append $sources (dict "kind" "Secret" "name" .name) }}{{ end -}}
{{- with .configMapRef }}{{ $sources = append $sources (dict "kind" "ConfigMap" "name" .name) }}{{ end -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- with ((.valueFrom).secretKeyRef) }}{{ $sources = append $sources (dict "kind" "Secret" "name" .name) }}{{ end -}}
{{- with ((.valueFrom).configMapKeyRef) }}{{ $sources = append $sources (dict "kind" "ConfigMap" "name" .name) }}{{ end -}}
{{- end -}}
{{- range $sources -}}
{{- $data := (lookup "v1" .kind $.Release.Namespace .name).data -}}
{{- if $data }}{{ $_ := set $found (printf "%s/%s" .kind .name) $data }}{{ end -}}
{{- end -}}
{{- if $found }}{{ $found | toJson | sha256sum }}{{ end -}}
{{- end -}}
