set -eu
git init -q -b main work
cd work
git config user.name a; git config user.email a@b
for i in 1 2 3; do echo $i >file$i; git add .; git commit -qm "commit $i"; done
git checkout -qb side HEAD~1; echo x >side; git add side; git commit -qm side; git checkout -q main; git merge -q -m merge side
git log --oneline | wc -l; git status --short; git gc -q; git clone -q . ../clone; git -C ../clone diff HEAD~1 --stat | tail -1; git grep -c x
