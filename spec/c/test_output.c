/* test_output.c: how the launcher brings outputs together: lines with prefixes, carriage returns, mpirun's tags, wherever a read happens to
 * cut them; characters, and the table of tasks. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include "cli/processes.c"
#include "cli/characters.c"
#include "cli/events.c"
#include "cli/output.c"
#include "cli/table.c"
#include "cli/tagged.c"

/* What waits for stdout or stderr. */
static void expect(output *out, int which, const char *text)
{
  char found[4096];
  output_queue *queue = &out->queue[which];
  assert_true(queue->count < sizeof found);
  memcpy(found, queue->bytes ? queue->bytes + queue->first : "", queue->count);
  found[queue->count] = '\0';
  assert_string_equal(found, text);
}

static void lines_are_the_same_however_they_are_cut(void **state)
{
  (void)state;
  static const char text[] = "one\n\ntwo\r\n\r\033[K10%\r\033[K20%\rdone\nlast";
  for (size_t step = 1; step <= sizeof text; step++) {
    output out = { 0 };
    output_writer writer = { .name = "worker:0", .log = -1 };
    output_line line = { .writer = &writer };
    for (size_t at = 0; at < sizeof text - 1; at += step) {
      size_t left = sizeof text - 1 - at;
      output_add(&out, &line, text + at, left < step ? left : step, 0);
    }
    output_finish(&out, &line, 0);
    expect(&out, 0, "[worker:0] one\n[worker:0] \n[worker:0] two\n[worker:0] done\n[worker:0] last\n");
    output_release(&out);
  }
}

static void a_log_gets_whole_lines_of_both_streams(void **state)
{
  (void)state;
  FILE *file = tmpfile();
  assert_non_null(file);
  output out = { 0 };
  output_writer writer = { .name = "a", .log = fileno(file) };
  output_line lines[2] = { { .writer = &writer }, { .writer = &writer, .to = 1 } };
  output_add(&out, &lines[0], "begun ", 6, 0);
  output_add(&out, &lines[1], "error\n", 6, 0);
  output_add(&out, &lines[0], "ended\nlast", 10, 0);
  for (int i = 0; i < 2; i++) output_finish(&out, &lines[i], 0);
  char text[64];
  rewind(file);
  size_t count = fread(text, 1, sizeof text - 1, file);
  text[count] = '\0';
  assert_string_equal(text, "error\nbegun ended\nlast\n");
  assert_int_equal(out.lost, 0);
  fclose(file);
  output_release(&out);
}

static void a_line_that_is_drawn_for_long_is_shown_now_and_then(void **state)
{
  (void)state;
  output out = { .colours = { 0, 1 } };
  output_writer writer = { .name = "a", .colour = 36, .log = -1 };
  output_line line = { .writer = &writer, .to = 1 };
  for (int second = 1; second <= 25; second++) {
    char text[16];
    snprintf(text, sizeof text, "\r%d", second);
    output_add(&out, &line, text, strlen(text), second);
  }
  output_finish(&out, &line, 25);
  expect(&out, 1, "\033[36m[a]\033[0m 9\n\033[36m[a]\033[0m 19\n\033[36m[a]\033[0m 25\n");
  output_release(&out);
}

static void lines_without_end_come_in_pieces(void **state)
{
  (void)state;
  output out = { 0 };
  output_writer writer = { .name = "a", .log = -1 };
  output_line line = { .writer = &writer };
  static char much[OUTPUT_LONGEST_LINE / 2];
  memset(much, 'x', sizeof much);
  for (int i = 0; i < 5; i++) output_add(&out, &line, much, sizeof much, 0);
  assert_int_equal(out.queue[0].count, 2 * (4 + OUTPUT_LONGEST_LINE + 1));
  assert_int_equal(line.count, sizeof much);
  assert_true(output_is_full(&out));
  output_finish(&out, &line, 0);
  output_release(&out);
}

/* Both may lead to the same terminal: a line that is out in part is ended first. */
static void a_begun_line_goes_first(void **state)
{
  (void)state;
  output out = { 0 };
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  out.queue[0].descriptor = out.queue[1].descriptor = ends[1];
  output_writer writer = { .name = "a", .log = -1 };
  output_line line = { .writer = &writer };
  static char text[PIPE_BUF + 100];
  memset(text, 'x', sizeof text);
  output_add(&out, &line, text, sizeof text, 0);
  output_add(&out, &line, "\n", 1, 0);
  output_say(&out, "note");
  assert_int_equal(output_events(&out, 0), POLLOUT);
  assert_int_equal(output_events(&out, 1), POLLOUT);
  output_write(&out, 0);
  assert_int_equal(output_events(&out, 1), 0);
  output_write(&out, 1);                                /* does nothing yet */
  output_write(&out, 0);
  assert_int_equal(output_events(&out, 0), 0);
  output_write(&out, 1);
  assert_int_equal(output_events(&out, 1), 0);
  static char found[2 * sizeof text];
  ssize_t count = read(ends[0], found, sizeof found);
  assert_int_equal(count, 4 + sizeof text + 1 + 5);
  assert_memory_equal(found + count - 6, "\nnote\n", 6);
  close(ends[0]);
  signal(SIGPIPE, SIG_IGN);
  output_say(&out, "nobody");
  output_write(&out, 1);
  assert_int_equal(out.queue[1].dead, EPIPE);
  assert_int_equal(output_events(&out, 1), 0);
  close(ends[1]);
  output_finish(&out, &line, 0);
  output_release(&out);
}

/* mpirun's output in every cut; `spaces` as its version has it. */
static void take_apart(const char *text, int spaces, const char *expected, int failed)
{
  size_t length = strlen(text);
  for (size_t step = 1; step <= length; step++) {
    output out = { 0 };
    output_writer own = { .name = "mpirun", .log = -1 };
    output_writer ranks[] = { { .name = "worker:0", .log = -1 }, { .name = "worker:1", .log = -1 } };
    output_line own_line = { .writer = &own }, lines[4];
    for (int i = 0; i < 4; i++) lines[i] = (output_line){ .writer = &ranks[i / 2] };     /* all to stdout */
    tagged source = { .ranks = 2, .spaces = spaces, .lines = lines, .own = &own_line, .current = &own_line, .failed = -1 };
    for (size_t at = 0; at < length; at += step) tagged_add(&out, &source, text + at, length - at < step ? length - at : step, 0);
    tagged_finish(&out, &source, 0);
    output_finish(&out, &own_line, 0);
    for (int i = 0; i < 4; i++) output_finish(&out, &lines[i], 0);
    expect(&out, 0, expected);
    assert_int_equal(source.failed, failed);
    output_release(&out);
  }
}

static void tags_are_taken_apart(void **state)
{
  (void)state;
  take_apart("[1,0]<stdout>:ab[1,1]<stdout>:x\n[1,0]<stdout>:c\n[1,1]<stderr>:[[1,0]]<y>\n[1,1]<stdout>:last", 0,
             "[worker:1] x\n[worker:0] abc\n[worker:1] [[1,0]]<y>\n[worker:1] last\n", -1);
  take_apart("[1,2]<stdout>:a rank that is not there\n[1,0]<stdou\n[1\n[", 0,
             "[mpirun] [1,2]<stdout>:a rank that is not there\n[mpirun] [1,0]<stdou\n[mpirun] [1\n[mpirun] [\n", -1);
  take_apart("[1,0]<stdout>: a\n[1,0]<stdout>:  b\n[1,1]<stderr>: \n", 1, "[worker:0] a\n[worker:0]  b\n[worker:1] \n", -1);
}

static void the_rank_that_failed_is_found(void **state)
{
  (void)state;
  take_apart("[1,1]<stderr>:flowlua: this rank exited with 5\n[1,0]<stderr>:flowlua: this rank exited with 6\n", 0,
             "[worker:1] flowlua: this rank exited with 5\n[worker:0] flowlua: this rank exited with 6\n", 1);
  take_apart("[1,0]<stderr>:flowlua: this rank exited with 1\n  Process name: [[24608,1],0]\n"
             "[1,1]<stderr>:flowlua: this rank was killed by SIGKILL\n[1,0]<stderr>:flowlua: this rank was killed by SIGSEGV\n", 0,
             "[worker:0] flowlua: this rank exited with 1\n[mpirun]   Process name: [[24608,1],0]\n"
             "[worker:1] flowlua: this rank was killed by SIGKILL\n[worker:0] flowlua: this rank was killed by SIGSEGV\n", 1);
  take_apart("mpirun noticed that process rank 1 with PID 0 on node a exited on signal 9 (Killed).\n", 0,
             "[mpirun] mpirun noticed that process rank 1 with PID 0 on node a exited on signal 9 (Killed).\n", 1);
  take_apart("  Process name: [[24608,1],0]\n", 0, "[mpirun]   Process name: [[24608,1],0]\n", 0);
  take_apart("   Process name: [prterun-a-27383@1,1]\n", 1, "[mpirun]    Process name: [prterun-a-27383@1,1]\n", 1);
  take_apart("[1,0]<stdout>:process rank 1 with\nprocess rank 7 with", 0,
             "[worker:0] process rank 1 with\n[mpirun] process rank 7 with\n", -1);
}

/* Unicode 15, table 3-7: well-formed sequences, and what is cut, too long, a surrogate or beyond the last code. */
static void characters_are_those_of_utf8(void **state)
{
  (void)state;
  static const struct { const char *text; size_t bytes; long code; } cases[] = {
    { "a", 1, 'a' }, { "\xc3\xa4", 2, 0xe4 }, { "\xe2\x82\xac", 3, 0x20ac }, { "\xf0\x90\x80\x80", 4, 0x10000 },
    { "\xf4\x8f\xbf\xbf", 4, 0x10ffff }, { "\xf4\x90\x80\x80", 1, -1 }, { "\xed\x9f\xbf", 3, 0xd7ff }, { "\xed\xa0\x80", 1, -1 },
    { "\xc0\xaf", 1, -1 }, { "\xe0\x9f\xbf", 1, -1 }, { "\x80", 1, -1 }, { "\xff", 1, -1 }, { "\xe2\x82", 1, -1 }, { "\xe2(\xac", 1, -1 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    long code;
    assert_int_equal(characters_read(cases[i].text, strlen(cases[i].text), &code), cases[i].bytes);
    assert_int_equal(code, cases[i].code);
  }
  static const struct { long code; int width; } columns[] = {
    { 'a', 1 }, { 0xe4, 1 }, { 0x301, 0 }, { 0x4e2d, 2 }, { 0xac00, 2 }, { 0xff01, 2 }, { 0xff61, 1 }, { 0x1f600, 2 },
    { 0x200d, 0 }, { 7, 0 },
  };
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) assert_int_equal(characters_width(columns[i].code), columns[i].width);
}

static void what_only_acts_is_no_character(void **state)
{
  (void)state;
  static const struct { const char *text; size_t bytes; } cases[] = {
    { "a", 0 }, { "\a", 1 }, { "\177", 1 }, { "\033[31mred", 5 }, { "\033[?25lx", 6 }, { "\033]0;title\ax", 10 }, { "\033]0;t\033\\x", 7 },
    { "\033(B", 2 }, { "\033", 1 }, { "\033[3", 3 }, { "\033]0;t", 5 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(characters_control(cases[i].text, strlen(cases[i].text)), cases[i].bytes);
  }
}

/* A line takes the table off first, and what is drawn over shows there before it has an end. */
static void the_table_stays_below_the_lines(void **state)
{
  (void)state;
  output_writer writer = { .name = "a:0", .log = -1, .state = OUTPUT_RUNNING }, *writers[] = { &writer };
  output out = { .form = OUTPUT_TABLE, .joined = 1, .writers = writers, .writer_count = 1, .queue = { { .descriptor = -1 } } };
  output_line line = { .writer = &writer };
  const char head[] = "Role  State       Restarts  Last line\n";
  char expected[1000];
  assert_int_equal(table_wait(&out, 1), 0);
  table_draw(&out, 1, 0);
  assert_int_equal(out.rows, 2);
  assert_int_equal(table_wait(&out, 1), -1);
  output_add(&out, &line, "10%", 3, 1);
  assert_int_equal(table_wait(&out, 1.05), 51);
  table_draw(&out, 1.05, 0);
  assert_int_equal(table_wait(&out, 1.2), 0);
  table_draw(&out, 1.2, 0);
  output_add(&out, &line, "\r20%\n", 5, 1.2);
  table_draw(&out, 1.2, 0);
  snprintf(expected, sizeof expected, "%sa:0   running     0         \n\033[2A\r\033[J%sa:0   running     0         10%%\n"
           "\033[2A\r\033[J[a:0] 20%%\n%sa:0   running     0         20%%\n", head, head, head);
  expect(&out, 0, expected);
  output_finish(&out, &line, 2);
  output_release(&out);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(lines_are_the_same_however_they_are_cut),
    cmocka_unit_test(a_log_gets_whole_lines_of_both_streams),
    cmocka_unit_test(a_line_that_is_drawn_for_long_is_shown_now_and_then),
    cmocka_unit_test(lines_without_end_come_in_pieces),
    cmocka_unit_test(a_begun_line_goes_first),
    cmocka_unit_test(tags_are_taken_apart),
    cmocka_unit_test(the_rank_that_failed_is_found),
    cmocka_unit_test(characters_are_those_of_utf8),
    cmocka_unit_test(what_only_acts_is_no_character),
    cmocka_unit_test(the_table_stays_below_the_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
