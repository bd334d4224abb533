#!/bin/bash
# The attempts, with annotations in the log, a page in the step's summary and reports in files.
# Environment: ENGINE, PROFILE, ONLY, BASELINE, REPORTS; GITHUB_OUTPUT, GITHUB_STEP_SUMMARY; BENCHSAND, another program than the installed.
set -eu
reports=$(realpath -m -- "$REPORTS")
mkdir -p -- "$reports"
arguments=(--engine "$ENGINE" --profile "$PROFILE" --format github
  --write "json=$reports/conformance.json" --write "sarif=$reports/conformance.sarif"
  --write "junit=$reports/conformance.xml" --write "markdown=$reports/conformance.md")
read -ra words <<<"$ONLY"
for word in "${words[@]}"; do arguments+=(--only "$word"); done
[ -z "$BASELINE" ] || arguments+=(--baseline "$BASELINE")

root=()
[ "$(id -u)" = 0 ] || root=(sudo)
# A step after this one must not show the reports of an earlier run for one that made none.
"${root[@]}" rm -f -- "$reports"/conformance.{sarif,xml,md}
[ "$BASELINE" -ef "$reports/conformance.json" ] || "${root[@]}" rm -f -- "$reports/conformance.json"
status=0
"${root[@]}" "${BENCHSAND:-benchsand}" conformance "${arguments[@]}" || status=$?
if [ -e "$reports/conformance.md" ]; then
  cat -- "$reports/conformance.md" >>"$GITHUB_STEP_SUMMARY"
else
  echo "benchsand conformance made no report: exit status $status, see the log" >>"$GITHUB_STEP_SUMMARY"
fi
{
  if [ "$status" = 0 ]; then echo "passed=true"; else echo "passed=false"; fi
  for output in json=json sarif=sarif junit=xml; do
    file=$reports/conformance.${output#*=}
    if [ -e "$file" ]; then echo "${output%=*}=$file"; fi
  done
} >>"$GITHUB_OUTPUT"
exit "$status"
