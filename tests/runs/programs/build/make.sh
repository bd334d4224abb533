set -eu
cp -r /task/c project
cd project
make -s -j4 check CXX=g++
touch part.c
make -s -j4 check
make -s clean
make -q all && exit 1
ls
