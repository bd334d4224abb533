set -eu
cmake -S /task/cmake -B out -G Ninja >configured
ninja -C out >built
ctest --test-dir out --output-on-failure >tested
cmake --install out --prefix /output/installed >installed.txt
cmake -S /task/cmake -B out2 -G "Unix Makefiles" >configured
cmake --build out2 -j2 >built
installed/bin/app
