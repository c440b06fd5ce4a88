/*
 * Makes the syncs of one process fail: LD_PRELOAD this, with HOLDFAST_FSYNC naming a file of one byte. While that byte
 * is not 0, fsync and fdatasync answer EIO and do nothing, as for a disk that cannot write any more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const volatile char *fails;

__attribute__((constructor)) static void open_switch(void) {
  const char *path = getenv("HOLDFAST_FSYNC");
  int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *place = mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
  if (place != MAP_FAILED) fails = place;
  close(file);
}

static int synced(long call, int file) {
  if (fails != NULL && *fails != 0) {
    errno = EIO;
    return -1;
  }
  return (int)syscall(call, file);
}

int fsync(int file) { return synced(SYS_fsync, file); }

int fdatasync(int file) { return synced(SYS_fdatasync, file); }
