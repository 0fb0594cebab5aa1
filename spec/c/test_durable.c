/* test_durable.c: what is left on the disk when writing goes wrong: full disks, killed writers, saves in the background. */
#define _GNU_SOURCE
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "io/tensor_file.h"

/* The program's own fsync, in place of the C library's: counts what is brought to the disk. */
static int files_synced, folders_synced, fsync_fails;
/* What another process writes to `path` at that moment; NULL: none does. */
static const char *written_meanwhile;

int fsync(int descriptor)
{
  struct stat facts;
  if (written_meanwhile) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(written_meanwhile, file) >= 0);
    assert_int_equal(fclose(file), 0);
    written_meanwhile = NULL;
  }
  if (fsync_fails) {
    errno = EIO;
    return -1;
  }
  assert_int_equal(fstat(descriptor, &facts), 0);
  if (S_ISDIR(facts.st_mode)) folders_synced++;
  else files_synced++;
  return (int)syscall(SYS_fsync, descriptor);
}

/* The same of the signals of a thread: counts how often they are changed. */
static _Atomic int masks_set;

int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
  masks_set++;
  return syscall(SYS_rt_sigprocmask, how, set, before, 8) == 0 ? 0 : errno;
}

static int count_files(void)
{
  DIR *stream = opendir(folder);
  assert_non_null(stream);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(stream));) count += entry->d_name[0] != '.';
  closedir(stream);
  return count;
}

static void expect_text(const char *expected)
{
  char text[64] = "";
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_true(fread(text, 1, sizeof text - 1, file) < sizeof text);
  fclose(file);
  assert_string_equal(text, expected);
}

static void file_and_folder_are_brought_to_the_disk(void **state)
{
  (void)state;
  files_synced = folders_synced = 0;
  assert_int_equal(flow_write_file(path, "one", 3), FLOW_OK);
  assert_int_equal(files_synced, 1);
  assert_int_equal(folders_synced, 1);
  fsync_fails = 1;
  assert_int_equal(flow_write_file(path, "two", 3), FLOW_IO_ERROR);
  fsync_fails = 0;
  expect_text("one");
  assert_int_equal(count_files(), 1);
}

static void a_copy_leaves_a_file_that_appears_meanwhile(void **state)
{
  (void)state;
  char from[sizeof path + 8];
  snprintf(from, sizeof from, "%s.from", path);
  assert_int_equal(flow_write_file(from, "ours", 4), FLOW_OK);
  written_meanwhile = "theirs";
  assert_int_equal(flow_copy_file(from, path, 0), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "exists: another process has made it meanwhile; give overwrite = true"));
  expect_text("theirs");
  assert_int_equal(count_files(), 2);
  assert_int_equal(flow_copy_file(from, path, 1), FLOW_OK);
  expect_text("ours");
  assert_int_equal(remove(from), 0);
}

static flow_tensor_writer *large_writer(void)
{
  flow_tensor_writer *writer;
  flow_tensor *tensor = zeros(FLOW_FLOAT32, 1, SHAPE(100000));
  assert_int_equal(flow_tensor_writer_new(&writer), FLOW_OK);
  assert_int_equal(flow_tensor_writer_checksums(writer, 1), FLOW_OK);
  assert_int_equal(flow_tensor_writer_add(writer, "x", tensor), FLOW_OK);
  flow_tensor_release(tensor);
  return writer;
}

static void a_file_limit_leaves_the_old_file(void **state)
{
  (void)state;
  flow_tensor_writer *writer = large_writer();
  struct rlimit before, limit;
  assert_int_equal(flow_write_file(path, "old", 3), FLOW_OK);
  signal(SIGXFSZ, SIG_DFL); /* which would end this process */
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = (struct rlimit){ .rlim_cur = 50000, .rlim_max = before.rlim_max };
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  assert_int_equal(flow_tensor_writer_save(writer, path, "safetensors"), FLOW_IO_ERROR);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_non_null(strstr(flow_last_error(), path));
  expect_text("old");
  assert_int_equal(count_files(), 1);
  flow_tensor_writer_release(writer);
}

/* Two for each write of the system, of 4096 bytes or more. */
static void small_pieces_change_no_signals(void **state)
{
  (void)state;
  flow_sink sink;
  assert_int_equal(flow_sink_open(path, &sink), FLOW_OK);
  masks_set = 0;
  for (int i = 0; i < 4096; i++) assert_int_equal(flow_sink_write(&sink, "0123456789", 10), FLOW_OK);
  assert_true(masks_set <= 2 * 11);
  assert_int_equal(flow_sink_commit(&sink), FLOW_OK);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
  (void)state;
  if (mount("flow-test", folder, "tmpfs", 0, "size=64k") != 0) skip();        /* needs root */
  flow_tensor_writer *writer = large_writer();
  flow_status status = flow_write_file(path, "old", 3);
  flow_status full = flow_tensor_writer_save(writer, path, "safetensors");
  char message[1024];
  snprintf(message, sizeof message, "%s", flow_last_error());
  int files = count_files();
  if (status == FLOW_OK) expect_text("old");
  assert_int_equal(umount(folder), 0);
  assert_int_equal(status, FLOW_OK);
  assert_int_equal(full, FLOW_IO_ERROR);
  assert_non_null(strstr(message, "No space left"));
  assert_int_equal(files, 1);
  flow_tensor_writer_release(writer);
}

static void a_read_only_folder_leaves_the_old_file(void **state)
{
  (void)state;
  if (mount("flow-test", folder, "tmpfs", 0, "size=64k") != 0) skip();        /* needs root, whom permissions do not stop */
  flow_status written = flow_write_file(path, "old", 3);
  int remounted = mount(NULL, folder, NULL, MS_REMOUNT | MS_RDONLY, NULL);
  flow_status refused = flow_write_file(path, "new", 3);
  int named = strstr(flow_last_error(), path) != NULL, files = count_files();
  if (written == FLOW_OK) expect_text("old");
  assert_int_equal(umount(folder), 0);
  assert_int_equal(written, FLOW_OK);
  assert_int_equal(remounted, 0);
  assert_int_equal(refused, FLOW_IO_ERROR);
  assert_true(named);
  assert_int_equal(files, 1);
}

static void only_dead_writers_files_are_removed(void **state)
{
  (void)state;
  flow_sink living;
  int ready[2];
  char byte, other[sizeof path], longer[sizeof path + 8];
  assert_int_equal(pipe(ready), 0);
  assert_int_equal(flow_sink_open(path, &living), FLOW_OK);
  snprintf(other, sizeof other, "%s/file.12-.tmp", folder);      /* not one of ours */
  fclose(fopen(other, "wb"));
  pid_t child = fork();
  if (child == 0) {
    flow_sink sink;
    if (flow_sink_open(path, &sink) != FLOW_OK || write(ready[1], "", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  assert_int_equal(count_files(), 3);
  assert_int_equal(flow_remove_abandoned(folder), 0);
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_int_equal(flow_remove_abandoned(folder), 1);
  assert_int_equal(count_files(), 2);
  assert_int_equal(flow_sink_write(&living, "whole", 5), FLOW_OK);
  assert_int_equal(flow_sink_commit(&living), FLOW_OK);
  expect_text("whole");
  assert_int_equal(flow_remove_abandoned("/nowhere/at/all"), 0);
  child = fork();
  if (child == 0) {
    flow_sink sink;
    _exit(flow_sink_open(path, &sink) != FLOW_OK);               /* ends without closing */
  }
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_int_equal(count_files(), 3);
  snprintf(longer, sizeof longer, "%s.longer", path);
  assert_int_equal(flow_write_file(longer, "x", 1), FLOW_OK);    /* another file whose name begins alike */
  assert_int_equal(count_files(), 4);
  assert_int_equal(flow_write_file(path, "next", 4), FLOW_OK);   /* writing the same file again removes what was left of it */
  assert_int_equal(count_files(), 3);
  unlink(longer);
  unlink(other);
  close(ready[0]);
  close(ready[1]);
}

/* A name as long as names may be leaves no room for what temporary files have in addition. */
static void the_longest_names_are_written(void **state)
{
  (void)state;
  for (int length = NAME_MAX - 45; length <= NAME_MAX; length++) {
    char longest[sizeof folder + NAME_MAX + 2];
    snprintf(longest, sizeof longest, "%s/%0*d", folder, length, 7);
    pid_t child = fork();
    if (child == 0) {
      flow_sink sink;
      _exit(flow_sink_open(longest, &sink) != FLOW_OK); /* ends without closing */
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    assert_int_equal(count_files(), 1);
    assert_int_equal(flow_write_file(longest, "first", 5), FLOW_OK);
    assert_int_equal(flow_write_file(longest, "second", 6), FLOW_OK);
    assert_int_equal(count_files(), 1);
    unlink(longest);
  }
}

static void a_thread_saves(void **state)
{
  (void)state;
  char then[sizeof path];
  flow_tensor_writer *writer = large_writer();
  flow_tensor_file *file;
  flow_save *save;
  snprintf(then, sizeof then, "%s/then", folder);
  assert_int_equal(flow_save_begin(writer, path, "safetensors", then, "text", &save), FLOW_OK);
  flow_tensor_writer_release(writer);                            /* the thread has its own reference */
  assert_int_equal(flow_save_wait(save), FLOW_OK);
  assert_int_equal(flow_save_wait(save), FLOW_OK);
  assert_int_equal(flow_save_done(save), 1);
  flow_save_release(save);
  assert_int_equal(flow_tensor_file_open(path, NULL, &file), FLOW_OK);
  assert_int_equal(flow_tensor_file_verify(file), FLOW_OK);
  flow_tensor_file_release(file);
  assert_int_equal(access(then, F_OK), 0);
  unlink(then);
  writer = large_writer();
  assert_int_equal(flow_save_begin(writer, "/nowhere/file", "safetensors", then, "text", &save), FLOW_OK);
  assert_int_equal(flow_save_wait(save), FLOW_NOT_FOUND);
  assert_non_null(strstr(flow_last_error(), "/nowhere/file"));
  assert_int_not_equal(access(then, F_OK), 0);                   /* it follows only what is safe */
  flow_save_release(save);
  assert_int_equal(flow_save_begin(writer, path, "safetensors", NULL, NULL, &save), FLOW_OK);
  flow_save_release(save);                                       /* waits */
  flow_tensor_writer_release(writer);
}

static void random_state_goes_on(void **state)
{
  (void)state;
  flow_context *a, *b;
  char text[128];
  assert_int_equal(flow_context_new(&a), FLOW_OK);
  assert_int_equal(flow_context_new(&b), FLOW_OK);
  flow_context_seed(a, 7);
  for (int i = 0; i < 5; i++) flow_context_next_seed(a);
  assert_true(flow_context_save(a, text, sizeof text) < (int)sizeof text);
  assert_int_equal(flow_context_restore(b, text), FLOW_OK);
  for (int i = 0; i < 5; i++) assert_true(flow_context_next_seed(a) == flow_context_next_seed(b));
  assert_int_equal(flow_context_restore(b, "flow-random-1 12 x"), FLOW_CORRUPT_DATA);
  assert_true(flow_context_next_seed(a) == flow_context_next_seed(b));
  flow_context_release(a);
  flow_context_release(b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    IN_FOLDER(file_and_folder_are_brought_to_the_disk),
    IN_FOLDER(a_copy_leaves_a_file_that_appears_meanwhile),
    IN_FOLDER(a_file_limit_leaves_the_old_file),
    IN_FOLDER(small_pieces_change_no_signals),
    IN_FOLDER(a_full_disk_leaves_the_old_file),
    IN_FOLDER(a_read_only_folder_leaves_the_old_file),
    IN_FOLDER(only_dead_writers_files_are_removed),
    IN_FOLDER(the_longest_names_are_written),
    IN_FOLDER(a_thread_saves),
    IN_FOLDER(random_state_goes_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
