/* A disk that is slow, full or failing, for one process: preloaded (LD_PRELOAD) before the C library.
 *
 * Every write to a file below a folder `data` first looks for a file `disk-fault` beside that folder.
 * It holds one word and a number: `slow 200` (each write and sync takes so many milliseconds more),
 * `fail 5` or `fail 28` (each fails with that errno: 5 is EIO, 28 is ENOSPC). Without it, and for
 * sockets, pipes and other files, nothing changes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Nonzero, with errno set, when the call is to fail. */
static int suffers(int fd) {
    char link[64], path[4096], order[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 16);
    if (size <= 0 || path[0] != '/') return 0;
    path[size] = 0;
    char *data = strstr(path, "/data/");
    if (!data) return 0;
    strcpy(data, "/disk-fault");
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        errno = 0;
        return 0;
    }
    ssize_t got = read(file, order, sizeof order - 1);
    close(file);
    if (got <= 5) return 0;
    order[got] = 0;
    int number = atoi(order + 5);
    if (!strncmp(order, "slow", 4)) usleep((useconds_t)number * 1000);
    if (strncmp(order, "fail", 4)) return 0;
    errno = number;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define SHIM(result, name, parameters, ...)                 \
    result name parameters {                                \
        static result(*real) parameters;                    \
        if (!real) real = REAL(name);                       \
        return suffers(fd) ? -1 : real(__VA_ARGS__);        \
    }

SHIM(ssize_t, write, (int fd, const void *bytes, size_t size), fd, bytes, size)
SHIM(ssize_t, writev, (int fd, const struct iovec *parts, int count), fd, parts, count)
SHIM(ssize_t, pwrite, (int fd, const void *bytes, size_t size, off_t at), fd, bytes, size, at)
SHIM(ssize_t, pwrite64, (int fd, const void *bytes, size_t size, off64_t at), fd, bytes, size, at)
SHIM(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t at), fd, parts, count, at)
SHIM(ssize_t, pwritev64, (int fd, const struct iovec *parts, int count, off64_t at), fd, parts, count, at)
SHIM(ssize_t, pwritev2, (int fd, const struct iovec *parts, int count, off_t at, int flags), fd, parts, count, at, flags)
SHIM(ssize_t, pwritev64v2, (int fd, const struct iovec *parts, int count, off64_t at, int flags), fd, parts, count, at, flags)
SHIM(int, fsync, (int fd), fd)
SHIM(int, fdatasync, (int fd), fd)
