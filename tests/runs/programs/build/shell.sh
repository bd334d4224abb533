# What build scripts do in bash.
set -euo pipefail
seq 1000 | awk '$1 % 7 == 0' | sort -rn | head -3 | tr '\n' ' '
mkdir -p tree/{a,b}/{c,d}; touch tree/a/c/{1..20}; ln -s c tree/a/link; ln tree/a/c/1 tree/b/hard
find tree -type f -name '1*' | xargs -P 2 -n 4 ls -l >/dev/null
cp -a tree copy; mv copy moved; chmod -R u+w moved; install -m 755 /bin/true moved/true; touch -d '2020-01-01' moved/a
tar -cf - tree | gzip -9 >tree.tar.gz; mkdir unpacked; tar -xzf tree.tar.gz -C unpacked; diff -r tree unpacked/tree
(sleep 0.01; echo background) & wait $!
mapfile -t lines < <(printf '%s\n' one two); echo "${lines[1]}"
trap 'echo trapped' USR1; kill -USR1 $$
cat <<<"here $(echo substituted)"
mktemp -d ./temp.XXXX >/dev/null; mkfifo pipe && { echo through >pipe & cat pipe; } || true
timeout 5 sed -i 's/^/x/' lines.txt 2>/dev/null || echo none >lines.txt
dd if=/dev/zero of=zeros bs=4k count=4 status=none; truncate -s 1M sparse; stat -c %s sparse; df . >/dev/null; nproc >/dev/null
sha256sum zeros | cut -c1-8; date -d @0 -u +%Y; printf 'b\na\n' | sort -u | paste -sd,; env -i sh -c 'echo $((1+2))'
time true; ulimit -n >/dev/null; nice true; xz --version >/dev/null 2>&1 || true; rm -rf tree moved unpacked; exec bash -c 'echo done'
