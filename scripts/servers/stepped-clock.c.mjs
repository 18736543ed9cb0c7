/**
 * C: a library to preload into a server. The wall clock that it sees is the host's plus what the file STEPPED_CLOCK says, as
 * microseconds in eight bytes. The monotonic clock is left alone.
 */
export const steppedClockSource = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *offset_us;
static int (*host_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("STEPPED_CLOCK");
  int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  host_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  if (file < 0) return;
  void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (page != MAP_FAILED) offset_us = page;
}

int clock_gettime(clockid_t clock, struct timespec *answer) {
  // Before the constructor has run, the kernel itself is asked.
  int failed = host_clock != NULL ? host_clock(clock, answer) : (int)syscall(SYS_clock_gettime, clock, answer);
  if (failed || offset_us == NULL) return failed;
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return 0;
  int64_t us = *offset_us;
  answer->tv_sec += us / 1000000;
  answer->tv_nsec += us % 1000000 * 1000;
  if (answer->tv_nsec < 0) {
    answer->tv_nsec += 1000000000;
    answer->tv_sec--;
  } else if (answer->tv_nsec >= 1000000000) {
    answer->tv_nsec -= 1000000000;
    answer->tv_sec++;
  }
  return 0;
}

int gettimeofday(struct timeval *restrict answer, void *restrict zone) {
  (void)zone;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  answer->tv_sec = now.tv_sec;
  answer->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *answer) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (answer != NULL) *answer = now.tv_sec;
  return now.tv_sec;
}
`
