#!/bin/sh
# Asks whatever linters are installed about the files here: docker/lint.sh. Says what it could not ask; fails if one complains.
set -eu
cd "$(dirname "$0")"

if command -v helm >/dev/null; then
  helm lint --quiet helm
  helm template try helm >/dev/null
  helm template try helm --set autoscaling.enabled=true,ingress.enabled=true,metrics.enabled=false,topologySpread=false >/dev/null
else
  echo 'helm is not installed: the chart was not rendered'
fi

if command -v nginx >/dev/null; then
  # Names of services are known inside the network of containers alone.
  draft=$(mktemp)
  trap 'rm -f "$draft"' EXIT
  sed 's/server gateway:8080 resolve/server 127.0.0.1:8080/' nginx.conf >"$draft"
  nginx -q -t -c "$draft"
else
  echo 'nginx is not installed: its file was not read'
fi

if docker compose version >/dev/null 2>&1; then
  POSTGRES_PASSWORD=x SEAL_SECRET=x AUTH_SECRET=x docker compose -f compose.scale.yaml config --quiet
  docker compose -f compose.yaml config --quiet
else
  echo 'docker compose is not installed: compose files were not read by it'
fi
