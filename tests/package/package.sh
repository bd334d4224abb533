#!/bin/bash
# The Debian package: built, installed into a system of its own, used there, and removed without a trace.
# usage: package.sh BUILD_DIR    Root. The system is an overlay over tests/setup/rootfs.sh image, gone at the end.
set -eu
build=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../..")
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAIL $*"; exit 1; }
ok() { echo "ok   $*"; }

[ "$(id -u)" = 0 ] || skip "needs root"
for program in mmdebstrap cmake man; do
  command -v $program >/dev/null || skip "$program is not installed"
done
if [ "${BENCHSAND_TEST_PRIVATE:-}" != 1 ]; then
  export BENCHSAND_TEST_PRIVATE=1
  exec unshare -m --propagation private "$0" "$@"
fi

rm -f "$build"/benchsand_*.deb
cmake --build "$build" --target deb >/dev/null
deb=$(echo "$build"/benchsand_*.deb)
[ -f "$deb" ] || fail "no package was built"
ok "built $(basename "$deb"), $(stat -c %s "$deb") bytes"

# Ubuntu's has rules of its own.
if command -v lintian >/dev/null && grep -qx 'ID=debian' /etc/os-release; then
  lintian --allow-root --fail-on error,warning "$deb" || fail "lintian"
  ok "lintian has nothing to say"
fi

work=$(mktemp -d)
image=$("$source/tests/setup/rootfs.sh" image)
mount -t tmpfs none "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay -o "lowerdir=$image,upperdir=$work/upper,workdir=$work/work" overlay "$work/root"
root=$work/root
trap 'umount -l "$work" 2>/dev/null || true; rmdir "$work" 2>/dev/null || true' EXIT
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
cp "$deb" "$root/tmp/benchsand.deb"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
# Everything but dpkg's own books and logs.
files() { (cd "$root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/log -o -path ./proc -o -path ./dev -o -path ./tmp \) -prune -o -printf '%p %M %u %l\n' | sort); }

files >"$work/before"
inside dpkg -i /tmp/benchsand.deb >"$work/log" 2>&1 || { cat "$work/log"; fail "dpkg -i"; }
version=$(inside benchsand --version)
[ "$version" = "benchsand $(dpkg-deb -f "$deb" Version)" ] || fail "benchsand --version: $version"
inside benchsand-runtime --version | grep -q "benchsand" || fail "benchsand-runtime --version"
inside benchsand limits --profile python >/dev/null || fail "benchsand limits"
[ "$(stat -c '%a %U' "$root/var/lib/benchsand")" = "700 root" ] || fail "mode of /var/lib/benchsand"
ok "installed: $version"

for name in benchsand $(cd "$source/profiles" && for file in *.yaml; do echo "benchsand-${file%.yaml}"; done); do
  [ "$(inside realpath /usr/lib/benchsand/runtimes/"$name")" = /usr/bin/benchsand-runtime ] || fail "the link $name"
done
mkdir -p "$root/etc/docker"
inside benchsand install docker >"$work/report"
inside grep -q '"/usr/lib/benchsand/runtimes/benchsand-python"' /etc/docker/daemon.json || fail "install docker: $(cat "$work/report")"
inside dpkg -r benchsand >"$work/log" 2>&1 || fail "dpkg -r"
grep -q "/etc/docker/daemon.json still names it; .*: benchsand install docker --uninstall" "$work/log" || fail "no word of the engine that still names it"
inside dpkg -i /tmp/benchsand.deb >/dev/null 2>&1 || fail "a second dpkg -i"
inside benchsand install docker --uninstall >/dev/null
[ ! -e "$root/etc/docker/daemon.json" ] || fail "uninstall left daemon.json"
rmdir "$root/etc/docker"
ok "the engines' names lead to the runtime"

for unit in service timer path; do
  [ -f "$root/usr/lib/systemd/system/benchsand-conformance.$unit" ] || fail "the unit benchsand-conformance.$unit"
done
# Nobody enabled them; an operator who did leaves nothing behind either.
[ -z "$(find "$root/etc/systemd" -name 'benchsand-*' 2>/dev/null)" ] || fail "a unit is enabled by the package"
mkdir -p "$root/etc/systemd/system/timers.target.wants" "$root/etc/systemd/system/paths.target.wants"
ln -s /usr/lib/systemd/system/benchsand-conformance.timer "$root/etc/systemd/system/timers.target.wants/"
ln -s /usr/lib/systemd/system/benchsand-conformance.path "$root/etc/systemd/system/paths.target.wants/"
inside dpkg -r benchsand >"$work/log" 2>&1 || fail "dpkg -r with units enabled"
[ -z "$(find "$root/etc/systemd" -name 'benchsand-*')" ] || fail "the removed package left units enabled"
inside dpkg -i /tmp/benchsand.deb >/dev/null 2>&1 || fail "a third dpkg -i"
rmdir "$root/etc/systemd/system/paths.target.wants"
rmdir --ignore-fail-on-non-empty "$root/etc/systemd/system/timers.target.wants"
ok "units: there, disabled, and gone with the package"

for page in man1/benchsand.1 man5/benchsand-task.5 man8/benchsand-runtime.8; do
  warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -E UTF-8 -l "$root/usr/share/man/$page.gz" 2>&1 >"$work/page")
  [ -z "$warnings" ] && [ -s "$work/page" ] || fail "man $page: $warnings"
done
LC_ALL=C.UTF-8 man -l "$root/usr/share/man/man1/benchsand.1.gz" | col -b >"$work/page"
told() { grep -qwe "$1" "$work/page" || fail "benchsand.1 says nothing of $1"; }
count=0
for command in $(inside benchsand --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  told "$command"
  for option in $(inside benchsand "$command" --help | grep -o '^  [-a-z,]*--[a-z-]*' | grep -o -- '--[a-z-]*'); do
    told "$option"
    count=$((count + 1))
  done
done
[ "$count" -gt 20 ] || fail "only $count options were found"
for key in $(python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["properties"])' "$source/docs/task.schema.json"); do
  zgrep -qw "$key" "$root/usr/share/man/man5/benchsand-task.5.gz" || fail "benchsand-task.5 says nothing of $key"
done
ok "manual: three pages without a warning; $count options, every key of a task"

# usage: completes SHELL WORD EXPECTED-WORD...    What the shell itself makes of a line.
completions=$root/usr/share
in_bash() {
  # shellcheck disable=SC2016 # expanded by the inner shell
  inside bash --norc -c '. /usr/share/bash-completion/completions/benchsand; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _benchsand; echo ${COMPREPLY[*]}' bash "$@"
}
[ "$(in_bash benchsand ver)" = verdict ] || fail "bash: ver"
[ "$(in_bash benchsand run t.yaml --engine '')" = "crun runc docker podman" ] || fail "bash: --engine"
[ "$(in_bash benchsand install --un)" = --uninstall ] || fail "bash: --un"
[ "$(in_bash benchsand install po)" = podman ] || fail "bash: po"
[ -z "$(in_bash benchsand verdict x)" ] || fail "bash: a file is bash's own business"
shells=bash
if command -v fish >/dev/null; then
  in_fish() { HOME=$work fish --no-config -c "source $completions/fish/vendor_completions.d/benchsand.fish; complete -C '$1'" | cut -f1 | xargs; }
  [ "$(in_fish 'benchsand verd')" = verdict ] || fail "fish: verd"
  [ "$(in_fish 'benchsand run --engine ')" = "crun docker podman runc" ] || fail "fish: --engine"
  [ "$(in_fish 'benchsand install ')" = "containerd docker podman" ] || fail "fish: install"
  shells="$shells fish"
fi
if command -v zsh >/dev/null; then
  "$source/tests/package/zsh_completion.zsh" "$completions/zsh/vendor-completions" || fail "zsh"
  shells="$shells zsh"
fi
ok "completion: $shells"

# What the pages say to type for a profile of one's own, in a system that has none.
for pair in plain=without-runtime slow=engines; do
  recipe=$(sed -n '/^install -d \/etc\/benchsand\/profiles/,/^```/{/^```/d;/systemctl/d;p}' "$source/docs/${pair#*=}.md")
  [ -n "$recipe" ] || fail "docs/${pair#*=}.md has no recipe"
  [ ! -e "$root/etc/benchsand" ] || fail "/etc/benchsand is there before the recipe"
  inside sh -ec "$recipe" || fail "the recipe of docs/${pair#*=}.md"
  inside benchsand limits --profile "${pair%=*}" >"$work/report" || fail "the profile ${pair%=*}"
  rm -r "$root/etc/benchsand"
done
ok "the profiles of the pages are made as they say"

inside dpkg --purge benchsand >"$work/log" 2>&1 || { cat "$work/log"; fail "dpkg --purge"; }
files >"$work/after"
diff "$work/before" "$work/after" || fail "left behind"
ok "removed: nothing left"
