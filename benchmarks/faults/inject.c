/* Fails one call of the C library that changes files, or kills the process at it. For LD_PRELOAD.

   INJECT_UNDER    only files below this directory
   INJECT_AT       number of the call to fail, from 1; 0 fails none
   INJECT_HOW      an error number, "short" (write half of the data) or "kill" (SIGKILL)
   INJECT_REST     1: all later writing calls fail too, as on a full disk
   INJECT_LOG      file to which the number and names of all calls are appended
   INJECT_HIT      file to which those of the failed calls are appended */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long calls, at;
static int how, rest, log_file = -1, hit_file = -1;
static const char *under;
enum { SHORT = -1, KILL = -2 };

static int open_log(const char *path) {
  return path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
}

__attribute__((constructor)) static void start(void) {
  const char *text;
  under = getenv("INJECT_UNDER");
  at = (text = getenv("INJECT_AT")) ? atol(text) : 0;
  rest = (text = getenv("INJECT_REST")) && *text == '1';
  text = getenv("INJECT_HOW");
  how = !text ? 0 : !strcmp(text, "short") ? SHORT : !strcmp(text, "kill") ? KILL : atoi(text);
  log_file = open_log(getenv("INJECT_LOG"));
  hit_file = open_log(getenv("INJECT_HIT"));
}

static void note(int file, long number, const char *name, const char *path) {
  char line[PATH_MAX + 64];
  if (file < 0) return;
  int size = snprintf(line, sizeof line, "%ld %s %s\n", number, name, path);
  syscall(SYS_write, file, line, size);
}

/* 1 if the call shall fail, with errno set; -1 if it shall be short */
static int fault(const char *name, const char *path) {
  if (!under || !path || strncmp(path, under, strlen(under))) return 0;
  long number = __sync_add_and_fetch(&calls, 1);
  note(log_file, number, name, path);
  if (!at || !(number == at || (rest && number > at))) return 0;
  note(hit_file, number, name, path);
  if (how == KILL) kill(getpid(), SIGKILL);
  if (how == SHORT) return number == at ? -1 : 0;
  errno = how;
  return 1;
}

static int fault_of(const char *name, int file) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return fault(name, path);
}

static const char *absolute(const char *path, char *buffer) {
  if (*path == '/') return path;
  if (!getcwd(buffer, PATH_MAX / 2)) return NULL;
  strncat(buffer, "/", 2);
  return strncat(buffer, path, PATH_MAX / 2);
}

#define REAL(type, name, ...) \
  static type (*real)(__VA_ARGS__); \
  if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

ssize_t write(int file, const void *data, size_t size) {
  REAL(ssize_t, "write", int, const void *, size_t);
  int bad = fault_of("write", file);
  return bad > 0 ? -1 : real(file, data, bad && size > 1 ? size / 2 : size);
}

#define PWRITE(name) \
  ssize_t name(int file, const void *data, size_t size, off64_t offset) { \
    REAL(ssize_t, #name, int, const void *, size_t, off64_t); \
    int bad = fault_of("write", file); \
    return bad > 0 ? -1 : real(file, data, bad && size > 1 ? size / 2 : size, offset); \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t writev(int file, const struct iovec *parts, int count) {
  REAL(ssize_t, "writev", int, const struct iovec *, int);
  return fault_of("write", file) > 0 ? -1 : real(file, parts, count);
}

#define ON_FILE(name) \
  int name(int file) { \
    REAL(int, #name, int); \
    return fault_of(#name, file) > 0 ? -1 : real(file); \
  }
ON_FILE(fsync)
ON_FILE(fdatasync)

int close(int file) {
  REAL(int, "close", int);
  int mode = fcntl(file, F_GETFL);
  int bad = mode >= 0 && (mode & O_ACCMODE) != O_RDONLY ? fault_of("close", file) : 0, error = errno;
  int result = real(file); /* as on Linux: closed also if it fails */
  if (bad > 0) errno = error;
  return bad > 0 ? -1 : result;
}

#define TRUNCATE(name) \
  int name(int file, off64_t size) { \
    REAL(int, #name, int, off64_t); \
    return fault_of("ftruncate", file) > 0 ? -1 : real(file, size); \
  }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

int rename(const char *from, const char *to) {
  REAL(int, "rename", const char *, const char *);
  char buffer[PATH_MAX];
  return fault("rename", absolute(to, buffer)) > 0 ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t mode) {
  REAL(int, "mkdir", const char *, mode_t);
  char buffer[PATH_MAX];
  return fault("mkdir", absolute(path, buffer)) > 0 ? -1 : real(path, mode);
}

#define OPEN(name) \
  int name(const char *path, int flags, ...) { \
    REAL(int, #name, const char *, int, ...); \
    va_list rest_of; \
    va_start(rest_of, flags); \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest_of, mode_t) : 0; \
    va_end(rest_of); \
    char buffer[PATH_MAX]; \
    if ((flags & O_CREAT) && fault("open", absolute(path, buffer)) > 0) return -1; \
    return real(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
