#!/bin/sh
# The package's units, as systemd reads them. Nothing is started.
set -eu
cd "$(dirname "$0")/../../docs/package"
command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The program need not be installed here.
for unit in benchsand-conformance.service benchsand-conformance.timer benchsand-conformance.path; do
  sed 's|=benchsand |=/bin/true |' "$unit" >"$work/$unit"
done
verify() { (cd "$work" && SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no --recursive-errors=no "./$1" 2>&1) || echo "exit status $?"; }

# Known to be able to fail: a key that does not exist, a program that is not there.
for wrong in '/^Type=/s/.*/Typ=oneshot/' 's|/bin/true |/bin/is-not-there |'; do
  cp "$work/benchsand-conformance.service" "$work/wrong.service"
  sed -i "$wrong" "$work/wrong.service"
  [ -n "$(verify wrong.service)" ] || { echo "self-test: systemd-analyze has nothing to say of $wrong"; exit 1; }
  rm "$work/wrong.service"
done

status=0
for unit in benchsand-conformance.service benchsand-conformance.timer benchsand-conformance.path; do
  said=$(verify "$unit")
  [ -z "$said" ] || { echo "$unit: $said"; status=1; }
done
grep -q '^WantedBy=timers.target$' benchsand-conformance.timer && grep -q '^WantedBy=paths.target$' benchsand-conformance.path ||
  { echo "a unit cannot be enabled"; status=1; }

# The step that hands the metrics on: in whole, or not at all.
step=$(sed -n "s|^ExecStopPost=/bin/sh -c '\(.*\)'\$|\1|p" benchsand-conformance.service | sed "s|\\\$\\\$|\$|g; s|%S|$work/state|g")
[ -n "$step" ] || { echo "no step hands the metrics on"; exit 1; }
mkdir -p "$work/state/benchsand/conformance" "$work/metrics"
hand_on() { METRICS_FOLDER=$1 sh -c "$step" 2>/dev/null; }
echo 'x 1' >"$work/state/benchsand/conformance/benchsand.prom"
hand_on "$work/metrics" && [ "$(cat "$work/metrics/benchsand.prom")" = 'x 1' ] || { echo "the metrics were not handed on"; status=1; }
[ "$(ls "$work/metrics")" = benchsand.prom ] || { echo "more than the metrics: $(ls "$work/metrics")"; status=1; }
rm "$work/state/benchsand/conformance/benchsand.prom"
hand_on "$work/metrics" && [ -z "$(ls "$work/metrics")" ] || { echo "old metrics stand for a run that wrote none"; status=1; }
hand_on "$work/nowhere" || { echo "a host without node_exporter fails"; status=1; }

[ $status = 0 ] && echo "three units are read without a word, and the metrics are handed on in whole or not at all"
exit $status
