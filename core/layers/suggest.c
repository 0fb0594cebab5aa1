/* suggest.c: edit distance over short names. */
#include "layers/suggest.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 63 };

static int smaller(int a, int b) { return a < b ? a : b; }

/* Optimal string alignment distance, ignoring case: insertions, deletions, substitutions and swapped neighbours each
 * cost 1. Only for names of at most LONGEST characters. */
static int edit_distance(const char *a, int a_length, const char *b, int b_length)
{
  int rows[3][LONGEST + 1];
  int *before = rows[0], *above = rows[1], *row = rows[2];
  for (int j = 0; j <= b_length; j++) above[j] = j;
  for (int i = 1; i <= a_length; i++) {
    row[0] = i;
    for (int j = 1; j <= b_length; j++) {
      int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
      row[j] = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + (x != y));
      if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) && y == tolower((unsigned char)a[i - 2]))
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

void flow_suggestion_offer(flow_suggestion *suggestion, const char *name)
{
  size_t asked_length = strlen(suggestion->asked), name_length = strlen(name);
  if (asked_length > LONGEST || name_length > LONGEST) return;
  int distance = edit_distance(suggestion->asked, (int)asked_length, name, (int)name_length);
  /* One wrong letter in three is a typing error; more is another word. */
  int most = (int)(name_length > asked_length ? name_length : asked_length) / 3;
  if (distance <= (most > 0 ? most : 1) && distance < suggestion->distance) {
    suggestion->best = name;
    suggestion->distance = distance;
  }
}

const char *flow_suggestion_text(const flow_suggestion *suggestion, char text[FLOW_SUGGESTION_SIZE])
{
  text[0] = '\0';
  if (suggestion->best) snprintf(text, FLOW_SUGGESTION_SIZE, "; did you mean \"%s\"?", suggestion->best);
  return text;
}
