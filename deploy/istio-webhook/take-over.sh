#!/bin/sh
# usage: take-over.sh check REVISION
#        take-over.sh tag TAG REVISION | untag TAG
#        take-over.sh redirect REVISION|all | back REVISION|all
#        take-over.sh print tag TAG REVISION | revision REVISION | default
#
# Lets injectd inject Istio's sidecar, and istiod again. docs/tasks/take-over-istio.md explains the ways and their
# order.
#
#   check     sends a pod through injectd, as a dry run
#   tag       makes the webhook of a tag that injectd serves, beside istiod
#   redirect  sends the webhooks of a revision and of its tags, or all, to injectd
#   back      restores them
#   print     prints a webhook configuration for Helm and GitOps
#
#   $NAMESPACE        the namespace of istiod and injectd [istio-system]
#   $SERVICE          the Service of injectd; in the chart, the release has the same name [injectd]
#   $PORT             the port of the Service [443]
#   $SECRET           the Secret with ca.crt [injectd-tls, else that of the chart: $SERVICE-certificates]
#   $CHECK_NAMESPACE  where `check` creates its pod, as a dry run: a namespace without Istio's labels,
#                     and a ServiceAccount is there [default]
#   $SAME_CA          if set: istiod's CA signed injectd's certificate, and istiod may write caBundles
set -eu
here=$(cd "$(dirname "$0")" && pwd)
namespace=${NAMESPACE:-istio-system}
service=${SERVICE:-injectd}
port=${PORT:-443}
# On a redirected configuration: the JSON patch that restores it.
restore=injectd/restore
configurations=mutatingwebhookconfigurations

fail() {
    echo "take-over: $*" >&2
    exit 1
}

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 64
}

ca_bundle() {
    for secret in ${SECRET:-injectd-tls "$service-certificates"}; do
        bundle=$(kubectl -n "$namespace" get secret "$secret" --ignore-not-found -o jsonpath='{.data.ca\.crt}')
        [ -z "$bundle" ] || break
    done
    [ -n "$bundle" ] || fail "no ca.crt in the Secret ${SECRET:-injectd-tls, nor in $service-certificates of the chart}"
    echo "$bundle"
}

# render FILE TAG REVISION
render() {
    bundle=$(ca_bundle)
    sed -e '/^#/d' -e "s|\${TAG}|$2|g" -e "s|\${REVISION}|$3|g" -e "s|\${NAMESPACE}|$namespace|g" \
        -e "s|\${SERVICE}|$service|g" -e "s|\${PORT}|$port|g" \
        -e "s|\${CA_BUNDLE}|$bundle|g" "$here/webhooks/$1"
}

# The names and annotations of a pod that would be created, through the tag of the check.
dry_run() {
    kubectl create --dry-run=server -f - \
        -o jsonpath='{.spec.initContainers[*].name} {.spec.containers[*].name} {.metadata.annotations.sidecar\.istio\.io/status}' <<POD
apiVersion: v1
kind: Pod
metadata:
  name: injectd-check
  namespace: ${CHECK_NAMESPACE:-default}
  labels: {istio.io/rev: injectd-check}
spec:
  containers:
  - {name: main, image: example.com/main:1}
POD
}

check() {
    render tag.yaml injectd-check "$1" | kubectl apply -f - >/dev/null
    trap 'kubectl delete "$configurations" injectd-tag-injectd-check --ignore-not-found >/dev/null' EXIT
    # The API server calls a new webhook after a moment.
    tries=0
    until pod=$(dry_run 2>&1) && case $pod in *istio-proxy*"\"revision\":\"$1\""*) true ;; *) false ;; esac; do
        tries=$((tries + 1))
        [ "$tries" -lt 30 ] || fail "injectd did not inject a pod of the revision $1: $pod"
        sleep 1
    done
    kubectl delete "$configurations" injectd-tag-injectd-check >/dev/null
    trap - EXIT
    echo "injectd injects pods of the revision $1"
}

# The configurations of a revision and of its tags, or all: NAME REVISION per line.
of_revision() {
    selector=app=sidecar-injector
    [ "$1" = all ] || selector=$selector,istio.io/rev=$1
    kubectl get "$configurations" -l "$selector" \
        -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.labels.istio\.io/rev}{"\n"}{end}'
}

# The Deployment of istiod of a revision.
istiod_of() {
    if [ "$1" = default ]; then echo istiod; else echo "istiod-$1"; fi
}

# Fails unless istiod of a revision does not write caBundles.
expect_no_writes() {
    deployment=$(istiod_of "$1")
    is_set=$(kubectl -n "$namespace" get deployment "$deployment" -o go-template='
        {{- range .spec.template.spec.containers}}{{range .env}}
        {{- if eq .name "INJECTION_WEBHOOK_CONFIG_NAME"}}{{if not (or .value .valueFrom)}}yes{{end}}{{end}}
        {{- end}}{{end}}')
    [ "$is_set" = yes ] || fail "istiod would write its own CA into the webhooks. Set this variable of istiod, and wait for the rollout:
  kubectl -n $namespace set env deployment/$deployment INJECTION_WEBHOOK_CONFIG_NAME=
  kubectl -n $namespace rollout status deployment/$deployment"
}

# patch NAME CLIENT_CONFIG: prints a JSON patch of every entry's clientConfig, in one piece.
patch() {
    kubectl get "$configurations" "$1" -o go-template='[
        {{- range $i, $it := .webhooks}}{{if $i}},{{end -}}
        {"op":"test","path":"/webhooks/{{$i}}/name","value":"{{.name}}"},
        {{- ""}}{"op":"replace","path":"/webhooks/{{$i}}/clientConfig","value":{{with .clientConfig}}'"$2"'{{end}}}
        {{- end}}]'
}

saved='{"caBundle":"{{or .caBundle ""}}",{{if .url}}"url":"{{.url}}"{{else}}"service":{{with .service}}{"name":"{{.name}}","namespace":"{{.namespace}}","path":"{{or .path "/"}}","port":{{or .port 443}}}{{end}}{{end}}}'

# redirect_one NAME REVISION
redirect_one() {
    # A word for each Service of a webhook, `=` for a url.
    services=$(kubectl get "$configurations" "$1" \
        -o jsonpath='{range .webhooks[*]}={.clientConfig.service.name}{"\n"}{end}' | sort -u | tr '\n' ' ')
    case " $services" in
        " =$service ") echo "$1: at injectd already"; return ;;
        *" = "*) fail "$1: a webhook has a url instead of a service; use print" ;;
        *" =$service "*)
            fail "$1: some of its webhooks are at injectd, others are not: run back, or restore it by hand" ;;
    esac
    before=$(patch "$1" "$saved")
    bundle=$(ca_bundle)
    after=$(patch "$1" '{"caBundle":"'"$bundle"'","service":{"name":"'"$service"'","namespace":"'"$namespace"'","path":"/istio/'"$2"'{{or .service.path "/"}}","port":'"$port"'}}')
    # Helm keeps an object with this annotation when a chart no longer has it.
    kubectl annotate --overwrite "$configurations" "$1" "$restore=$before" helm.sh/resource-policy=keep >/dev/null
    kubectl patch "$configurations" "$1" --type=json -p "$after" >/dev/null
    echo "$1: redirected to injectd"
}

redirect() {
    list=$(of_revision "$1")
    [ -n "$list" ] || fail "no webhook configuration of the revision $1"
    revisions=$(echo "$list" | cut -d' ' -f2 | sort -u)
    for revision in $revisions; do
        [ -n "${SAME_CA:-}" ] || expect_no_writes "$revision"
        check "$revision"
    done
    echo "$list" | while read -r name revision; do
        redirect_one "$name" "$revision"
    done
}

back() {
    list=$(of_revision "$1")
    [ -n "$list" ] || fail "no webhook configuration of the revision $1"
    echo "$list" | while read -r name _; do
        before=$(kubectl get "$configurations" "$name" -o jsonpath='{.metadata.annotations.injectd/restore}')
        case $name,$before in
            injectd-tag-*) continue ;;
            *,) echo "$name: not redirected by this script"; continue ;;
        esac
        kubectl patch "$configurations" "$name" --type=json -p "$before" >/dev/null
        kubectl annotate "$configurations" "$name" "$restore-" helm.sh/resource-policy- >/dev/null
        echo "$name: back at istiod"
    done
    echo "now let istiod of each revision write its CA again:"
    for revision in $(echo "$list" | cut -d' ' -f2 | sort -u); do
        echo "  kubectl -n $namespace set env deployment/$(istiod_of "$revision") INJECTION_WEBHOOK_CONFIG_NAME-"
    done
}

# Fails if another configuration selects namespaces with this revision or tag: both would inject.
must_be_free() {
    labels='{range .items[*]}{.metadata.name}{" "}{.metadata.labels.istio\.io/tag}{" "}{.metadata.labels.istio\.io/rev}{"\n"}{end}'
    taken=$(kubectl get "$configurations" -o jsonpath="$labels" |
        awk -v tag="$1" '$1 != "injectd-tag-" tag && $2 == tag { print $1 }')
    [ -z "$taken" ] || fail "$taken injects namespaces with istio.io/rev=$1 already; choose another tag"
}

untag() {
    labelled=$(kubectl get namespaces -l "istio.io/rev=$1" -o name)
    [ -z "$labelled" ] || fail "label these first with another revision: $labelled"
    kubectl delete "$configurations" "injectd-tag-$1"
}

case $#,${1:-} in
    2,check) check "$2" ;;
    3,tag)
        check "$3"
        must_be_free "$2"
        render tag.yaml "$2" "$3" | kubectl apply -f -
        ;;
    2,untag) untag "$2" ;;
    2,redirect) redirect "$2" ;;
    2,back) back "$2" ;;
    4,print) [ "$2" = tag ] && render tag.yaml "$3" "$4" ;;
    3,print) [ "$2" = revision ] && render revision.yaml - "$3" ;;
    2,print) [ "$2" = default ] && render default.yaml - default ;;
    *) usage ;;
esac
