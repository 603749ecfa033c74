{{- define "headwater.labels" -}}
app.kubernetes.io/name: headwater
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "headwater.selector" -}}
app.kubernetes.io/name: headwater
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "headwater.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "headwater.podSecurity" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "headwater.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "headwater.env" -}}
env:
  - name: HEADWATER_DATABASE_URL
    valueFrom: {secretKeyRef: {name: {{ .Values.existingSecret }}, key: database-url}}
  - name: HEADWATER_SECRET_KEY
    valueFrom: {secretKeyRef: {name: {{ .Values.existingSecret }}, key: secret-key}}
  - name: CELERY_BROKER_URL
    valueFrom: {secretKeyRef: {name: {{ .Values.existingSecret }}, key: broker-url}}
  - name: HEADWATER_IMAGES
    value: {{ if .Values.images.existingClaim }}"on"{{ else }}"off"{{ end }}
  {{- range $name, $key := .Values.secretSettings }}
  - name: {{ $name }}
    valueFrom: {secretKeyRef: {name: {{ $.Values.existingSecret }}, key: {{ $key }}}}
  {{- end }}
envFrom:
  - configMapRef: {name: {{ .Release.Name }}-settings}
{{- end }}

{{- define "headwater.mounts" -}}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: data, mountPath: /data}
{{- end }}

{{- define "headwater.volumes" -}}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: 512Mi}
  - name: data
    {{- if .Values.images.existingClaim }}
    persistentVolumeClaim: {claimName: {{ .Values.images.existingClaim }}}
    {{- else }}
    emptyDir: {sizeLimit: 64Mi}
    {{- end }}
{{- end }}

{{- define "headwater.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "headwater.selector" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
{{- end }}
