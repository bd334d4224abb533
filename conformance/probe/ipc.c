// What two runs could share without a file: System V and POSIX objects, by name or key.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs.h"

enum { kKey = 0x62736e64 };

// shm: one of its own, removed again. shm:KEY: somebody else's.
static int shared_memory(const struct attempt* attempt) {
  if (attempt->count) return outcome(shmget((key_t)number_argument(attempt, 0, kKey), 0, 0));
  const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  if (id < 0) return errno;
  shmctl(id, IPC_RMID, NULL);
  return 0;
}

static int messages(const struct attempt* attempt) {
  if (attempt->count) return outcome(msgget((key_t)number_argument(attempt, 0, kKey), 0));
  const int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
  if (id < 0) return errno;
  msgctl(id, IPC_RMID, NULL);
  return 0;
}

static int semaphores(const struct attempt* attempt) {
  if (attempt->count) return outcome(semget((key_t)number_argument(attempt, 0, kKey), 0, 0));
  const int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
  if (id < 0) return errno;
  semctl(id, 0, IPC_RMID);
  return 0;
}

static int queue(const struct attempt* attempt) {
  const char* const name = text_argument(attempt, 0, "benchsand-probe");
  const int create = attempt->count ? 0 : O_CREAT | O_EXCL;
  const int result = outcome(syscall(SYS_mq_open, name, O_RDWR | create, 0600L, NULL));
  if (result == 0 && create) syscall(SYS_mq_unlink, name);
  return result;
}

static int statistics(const struct attempt* attempt) {
  (void)attempt;
  struct shm_info info;
  const int most = shmctl(0, SHM_INFO, (struct shmid_ds*)(void*)&info);
  if (most < 0) return errno;
  tell("segments", "%d", info.used_ids);
  return info.used_ids ? 0 : kEmpty;
}

const struct verb kIpcVerbs[] = {
    {"shm", shared_memory}, {"msg", messages}, {"sem", semaphores}, {"mq", queue}, {"shm-info", statistics}, {0},
};
