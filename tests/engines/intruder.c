/* What a program in a container tries that no wall may let it; one line "attempt=result" each, where a result is an
   errno or what came of it. engines.py says which results a wall gives, and a control run that the attempts can succeed.
   usage: intruder [write:PATH | open:PATH | read:PATH | unix:PATH]... */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(const char* name, int failed) {
  printf("%s=%s\n", name, failed ? strerrorname_np(errno) : "done");
}

static void identity(void) {
  static char block[65536];
  const int fd = open("/proc/self/status", O_RDONLY);
  if (fd < 0 || read(fd, block, sizeof block - 1) < 0) exit(3);
  close(fd);
  const char* keys[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Uid", "Groups"};
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i)
    for (char* line = block; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
      if (strncmp(line, keys[i], strlen(keys[i])) == 0 && line[strlen(keys[i])] == ':') {
        printf("%s=", keys[i]);
        for (const char* c = line + strlen(keys[i]) + 1; *c && *c != '\n'; ++c)
          if (*c != '\t' && *c != ' ') putchar(*c);
        putchar('\n');
      }
}

static void network(void) {
  char line[4096], name[64];
  FILE* links = fopen("/proc/net/dev", "r");
  printf("links=");
  for (int number = 0; links && fgets(line, sizeof line, links); ++number)
    if (number >= 2 && sscanf(line, " %63[^:]", name) == 1) printf("%s,", name);
  printf("\n");
  if (links) fclose(links);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  tell("socket", fd < 0);
  const struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  tell("bind", bind(fd, (const struct sockaddr*)&here, sizeof here) != 0);
  tell("packet", socket(AF_PACKET, SOCK_RAW, 0) < 0);
  tell("netlink", socket(AF_NETLINK, SOCK_RAW, 0) < 0);
}

/* In a child, so that what one attempt changes is not another's ground. */
static void in_child(void (*attempts)(void)) {
  fflush(stdout);
  if (fork() == 0) {
    attempts();
    exit(0);
  }
  wait(NULL);
}

static void privileges(void) {
  tell("setuid", setuid(1234) != 0);
}

static void namespaces(void) {
  tell("unshare", unshare(CLONE_NEWNS) != 0);
  tell("mount", mount("tmpfs", "/proc", "tmpfs", 0, NULL) != 0 || umount("/proc") != 0);
  tell("remount", mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL) != 0);
}

static void names(void) {
  char name[65] = "";
  if (gethostname(name, sizeof name - 1) != 0) exit(3);
  tell("sethostname", sethostname(name, strlen(name)) != 0);
}

static void devices(void) {
  mknod("/tmp/disk", S_IFBLK | 0600, makedev(7, 0));
  tell("mknod", access("/tmp/disk", F_OK) != 0);
  unlink("/tmp/disk");
}

static void processes(void) {
  char name[300], command[64];
  DIR* all = opendir("/proc");
  int strangers = 0;
  for (struct dirent* entry; all && (entry = readdir(all));) {
    snprintf(name, sizeof name, "/proc/%s/comm", entry->d_name);
    const int fd = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? open(name, O_RDONLY) : -1;
    const ssize_t n = fd < 0 ? -1 : read(fd, command, sizeof command - 1);
    if (fd >= 0) close(fd);
    if (n > 0) command[n] = 0;
    strangers += n > 0 && strncmp(command, "dockerd", 7) == 0;
    strangers += n > 0 && strncmp(command, "python3", 7) == 0;
    strangers += n > 0 && strncmp(command, "containerd", 10) == 0;
  }
  if (all) closedir(all);
  printf("strangers=%d\n", strangers);
}

static void given(const char* what) {
  const char* path = strchr(what, ':') + 1;
  errno = 0;
  if (!strncmp(what, "write:", 6)) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    tell(what, fd < 0 || write(fd, "intruder\n", 9) != 9);
    if (fd >= 0) close(fd);
  } else if (!strncmp(what, "open:", 5)) { /* for writing; a file of the kernel, where a written word would do harm */
    const int fd = open(path, O_WRONLY);
    tell(what, fd < 0);
    if (fd >= 0) close(fd);
  } else if (!strncmp(what, "read:", 5)) {
    char byte;
    const int fd = open(path, O_RDONLY | O_NONBLOCK);
    const ssize_t n = fd < 0 ? -1 : read(fd, &byte, 1);
    if (n == 0)
      printf("%s=nothing\n", what); /* masked */
    else
      tell(what, n < 0);
    if (fd >= 0) close(fd);
  } else if (!strncmp(what, "unix:", 5)) {
    struct sockaddr_un there = {.sun_family = AF_UNIX};
    snprintf(there.sun_path, sizeof there.sun_path, "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    tell(what, fd < 0 || connect(fd, (const struct sockaddr*)&there, sizeof there) != 0);
    if (fd >= 0) close(fd);
  } else {
    exit(2);
  }
}

int main(int argc, char** argv) {
  /* What succeeds is undone or harmless; all the same it has to be tried in the test's image only. */
  if (access("/intruder-image", F_OK) != 0) return 2;
  identity();
  network();
  processes();
  for (int i = 1; i < argc; ++i)
    if (strchr(argv[i], ':')) given(argv[i]);
  in_child(privileges);
  in_child(names);
  in_child(devices);
  in_child(namespaces);
  puts("end=reached");
  return 0;
}
