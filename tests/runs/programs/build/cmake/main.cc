#include <cstdio>
#include <thread>
extern "C" int part();
int main() {
  std::thread([] { std::printf("%d from a thread\n", part() + 1); }).join();
}
