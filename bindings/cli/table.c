/* table.c: see table.h. */
#include "table.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "characters.h"
#include "processes.h"

static const double PAUSE = 0.1;      /* seconds between two drawings */
enum { GAP = 2, LEAST_ROWS = 4, SHOWN_STATE = 64, BOLD = 1, RED = 31, GREEN = 32, YELLOW = 33 };

const char *table_state(enum output_state state)
{
  static const char *const names[] = { "waiting", "running", "restarting", "done", "failed", "ended" };
  return names[state];
}

int table_restarts(const output *self)
{
  int count = 0;
  for (int i = 0; i < self->writer_count; i++) count += self->writers[i]->restarts;
  return count;
}

void table_erase(output *self)
{
  char text[32];
  if (self->rows == 0) return;
  int length = snprintf(text, sizeof text, "\033[%dA\r\033[J", self->rows);
  output_append(self, 0, text, (size_t)length);
  self->rows = 0;
}

/* Columns and rows of the terminal; those of the first ones where it does not say. */
static void measure(const output *self, int *columns, int *rows)
{
  struct winsize size = { 0 };
  int known = ioctl(self->queue[0].descriptor, TIOCGWINSZ, &size) == 0;
  *columns = known && size.ws_col > 0 ? size.ws_col : 80;
  *rows = known && size.ws_row > 0 ? size.ws_row : 24;
}

/* ---- cells --------------------------------------------------------------------------------------------------------------------------- */

/* What is shown of a text in this many columns; returns how many it took. Draws nothing without `self`. Escape sequences and control
 * characters of a task are left out, so that its last line cannot move the cursor; a tab is one space. */
static int put_visible(output *self, const char *text, size_t count, int columns)
{
  int used = 0;
  while (count > 0) {
    long code;
    size_t bytes = characters_control(text, count);
    if (bytes == 0) {
      bytes = characters_read(text, count, &code);
      int width = code < 0 ? 1 : characters_width(code);
      if (used + width > columns) return used;
      int acts = code >= 0x80 && code < 0xa0;            /* a control character of eight bits */
      if (self && !acts) output_append(self, 0, code < 0 ? "?" : text, code < 0 ? 1 : bytes);
      used += width;
    } else if (*text == '\t' && used < columns) {
      if (self) output_append(self, 0, " ", 1);
      used++;
    }
    text += bytes;
    count -= bytes;
  }
  return used;
}

/* A cell of a row that has *left columns, and the gap after it; width 0: the row's last. */
static void put_cell(output *self, int *left, const char *text, size_t count, int width, int colour)
{
  char code[16];
  int columns = width == 0 || width > *left ? *left : width, coloured = self->colours[0] && colour && count > 0;
  if (coloured) output_append(self, 0, code, (size_t)snprintf(code, sizeof code, "\033[%dm", colour));
  int used = put_visible(self, text, count, columns);
  if (coloured) output_append(self, 0, "\033[0m", 4);
  *left -= used;
  for (; width > 0 && used < width + GAP && *left > 0; used++, --*left) output_append(self, 0, " ", 1);
}

/* "running", "exited with 3", "killed by SIGKILL". */
static const char *state_of(const output_writer *writer, char *text)
{
  if (writer->state != OUTPUT_FAILED) return table_state(writer->state);
  processes_describe(writer->status, text, SHOWN_STATE);
  return strncmp(text, "was ", 4) == 0 ? text + 4 : text;
}

static int colour_of(enum output_state state)
{
  static const int colours[] = { 0, GREEN, YELLOW, 0, RED, 0 };
  return colours[state];
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------------------- */

typedef struct widths { int role, state, columns; } widths;

static void put_row(output *self, const widths *all, const char *role, const char *state, const char *restarts, const char *last,
                    size_t count, const int *colours)
{
  int left = all->columns;
  put_cell(self, &left, role, strlen(role), all->role, colours[0]);
  put_cell(self, &left, state, strlen(state), all->state, colours[1]);
  put_cell(self, &left, restarts, strlen(restarts), (int)strlen("Restarts"), colours[2]);
  put_cell(self, &left, last, count, 0, colours[3]);
  output_append(self, 0, "\n", 1);
  self->rows++;
}

static void put_writer(output *self, const widths *all, const output_writer *writer)
{
  char state[SHOWN_STATE], restarts[16];
  int colours[] = { self->colours[0] ? writer->colour : 0, colour_of(writer->state), 0, 0 };
  snprintf(restarts, sizeof restarts, "%d", writer->restarts);
  put_row(self, all, writer->name, state_of(writer, state), restarts, writer->last, writer->last_count, colours);
}

/* "and 3 more: 2 running, 1 done". */
static void put_rest(output *self, const widths *all, int first)
{
  char text[256];
  int counts[OUTPUT_ENDED + 1] = { 0 }, left = all->columns, used;
  const char *between = ": ";
  for (int i = first; i < self->writer_count; i++) counts[self->writers[i]->state]++;
  used = snprintf(text, sizeof text, "and %d more", self->writer_count - first);
  for (int state = 0; state <= OUTPUT_ENDED; state++) {
    if (counts[state] == 0) continue;
    used += snprintf(text + used, sizeof text - (size_t)used, "%s%d %s", between, counts[state], table_state((enum output_state)state));
    between = ", ";
  }
  put_cell(self, &left, text, (size_t)used, 0, 0);
  output_append(self, 0, "\n", 1);
  self->rows++;
}

static int wider(int width, const char *text)
{
  int other = put_visible(NULL, text, strlen(text), 1000);
  return other > width ? other : width;
}

/* Rows that do not fit into the terminal are counted in a last row; the header, that row and the cursor's line need three. The number of
 * drawn rows is remembered: table_erase goes up by it. */
void table_draw(output *self, double now, int force)
{
  static const int bold[] = { BOLD, BOLD, BOLD, BOLD };
  if (self->form != OUTPUT_TABLE || (!force && table_wait(self, now) != 0)) return;
  widths all = { .role = wider(0, "Role"), .state = wider(0, "Restarting") };
  int rows, shown = self->writer_count;
  char state[SHOWN_STATE];
  table_erase(self);
  measure(self, &all.columns, &rows);
  all.columns--;                                       /* the last one would begin the next row on some terminals */
  if (rows < LEAST_ROWS) rows = LEAST_ROWS;
  if (shown > rows - 2) shown = rows - 3;
  for (int i = 0; i < shown; i++) {
    all.role = wider(all.role, self->writers[i]->name);
    all.state = wider(all.state, state_of(self->writers[i], state));
  }
  put_row(self, &all, "Role", "State", "Restarts", "Last line", strlen("Last line"), bold);
  for (int i = 0; i < shown; i++) put_writer(self, &all, self->writers[i]);
  if (shown < self->writer_count) put_rest(self, &all, shown);
  self->drawn = now;
  self->stale = 0;
}

int table_wait(const output *self, double now)
{
  if (self->form != OUTPUT_TABLE || (self->rows > 0 && !self->stale)) return -1;
  double left = (self->drawn + PAUSE - now) * 1e3;
  return self->rows == 0 || left <= 0 ? 0 : (int)left + 1;
}
