#!/usr/bin/zsh -f
# usage: zsh_completion.zsh DIR    Types lines into a zsh that has DIR/_benchsand, and looks at what TAB makes of them.
zmodload zsh/zpty
folder=$1
zpty shell "TERM=dumb zsh -f"
zpty -w shell "PS1='>'; fpath=($folder \$fpath); autoload -U compinit; compinit -u -D; zstyle ':completion:*' menu no; stty -echo"
sleep 1

# A word that TAB ends, and what has to stand there then.
completes() {
  zpty -w -n shell $'\C-u'"$1"$'\t\C-a'"echo '<"$'\C-e'"'>"$'\n'
  local line seen=
  repeat 50; do
    while zpty -r -t shell line; do seen+=$line; done
    [[ $seen == *"<$2"* ]] && return 0
    sleep 0.1
  done
  print "after '$1' and TAB: expected '$2', seen: $seen"
  return 1
}
bad=0
completes "benchsand verd" "benchsand verdict" || bad=1
completes "benchsand run --engine ru" "benchsand run --engine runc" || bad=1
completes "benchsand install --unin" "benchsand install --uninstall" || bad=1
completes "benchsand install pod" "benchsand install podman" || bad=1
zpty -d shell
exit $bad
