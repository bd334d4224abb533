/* Stands in the place of a delegate and executes the script beside it; a script itself cannot be executed by descriptor. */
#include <unistd.h>

int main(int argc, char** argv) {
  char* words[64] = {"python3", "/usr/local/sbin/lie.py"};
  for (int i = 1; i < argc && i < 61; ++i) words[i + 1] = argv[i];
  execv("/usr/bin/python3", words);
  return 127;
}
