#include <stdio.h>
int part(void);
const char* help(void);
int main(void) {
  printf("%d %s\n", part() + 1, help());
  return 0;
}
