/* names.c: edit distance over short names, and Keras' snake case. */
#include "base/names.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

enum { LONGEST = 63 };

/* Those of ASCII: a host's locale changes no name. */
static int is_lower(char c) { return c >= 'a' && c <= 'z'; }
static int is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }
static char lower(char c) { return is_upper(c) ? (char)(c - 'A' + 'a') : c; }

static int smaller(int a, int b) { return a < b ? a : b; }

/* Optimal string alignment distance, ignoring case: insertions, deletions, substitutions and swapped neighbours each cost 1. Only for
 * names of at most LONGEST characters. Three rows of the table are enough: a swap looks two rows back. */
static int edit_distance(const char *a, int a_length, const char *b, int b_length)
{
  int rows[3][LONGEST + 1];
  int *before = rows[0], *above = rows[1], *row = rows[2];
  for (int j = 0; j <= b_length; j++) above[j] = j;
  for (int i = 1; i <= a_length; i++) {
    row[0] = i;
    for (int j = 1; j <= b_length; j++) {
      char x = lower(a[i - 1]), y = lower(b[j - 1]);
      row[j] = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + (x != y));
      if (i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2]))
        row[j] = smaller(row[j], before[j - 2] + 1);
    }
    int *next = before;
    before = above;
    above = row;
    row = next;
  }
  return above[b_length];
}

flow_suggestion flow_suggestion_for(const char *asked)
{
  return (flow_suggestion){ .asked = asked, .best = NULL, .distance = INT_MAX };
}

/* most: edits; negative: one wrong letter in three, which is a typing error. More is another word, and so is a name that shares no letter.
 * Longer names than LONGEST are never offered, since the rows have room for no more. */
static void offer(flow_suggestion *suggestion, const char *name, int most)
{
  size_t asked_length = strlen(suggestion->asked), name_length = strlen(name);
  if (asked_length > LONGEST || name_length > LONGEST) return;
  int distance = edit_distance(suggestion->asked, (int)asked_length, name, (int)name_length);
  int longest = (int)(name_length > asked_length ? name_length : asked_length);
  if (most < 0) most = longest / 3;
  if (distance <= (most > 0 ? most : 1) && (distance < longest || distance == 0) && distance < suggestion->distance) {
    suggestion->best = name;
    suggestion->distance = distance;
  }
}

void flow_suggestion_offer(flow_suggestion *suggestion, const char *name) { offer(suggestion, name, -1); }

int flow_nearest_name(const char *asked, const char *const *names, int count, int most)
{
  flow_suggestion suggestion = flow_suggestion_for(asked);
  int best = -1;
  if (!asked || !names) return best;
  for (int i = 0; i < count; i++) {
    int before = suggestion.distance;
    offer(&suggestion, names[i], most);
    if (suggestion.distance < before) best = i;
  }
  return best;
}

const char *flow_suggestion_text(const flow_suggestion *suggestion, char text[FLOW_SUGGESTION_SIZE])
{
  text[0] = '\0';
  if (suggestion->best) snprintf(text, FLOW_SUGGESTION_SIZE, "; did you mean \"%s\"?", suggestion->best);
  return text;
}

/* Keras' rule (keras.src.utils.naming.to_snake_case): an underscore before a capital that begins a word, "ConvLSTM2D" to "conv_lstm2d". */
int flow_snake_case(const char *class_name, char *text, int size)
{
  flow_text out = flow_text_into(text, size);
  for (const char *c = class_name; c && *c; c++) {
    if (is_upper(*c) && c > class_name && (is_lower(c[1]) || is_lower(c[-1]))) flow_text_add(&out, "_");
    if (is_lower(*c) || is_upper(*c) || is_digit(*c) || *c == '_') flow_text_add(&out, "%c", lower(*c));
  }
  return out.length;
}
