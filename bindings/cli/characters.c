/* characters.c: see characters.h. */
#include "characters.h"

#include <string.h>

/* Refuses what RFC 3629 refuses: bytes that only continue, more bytes than needed (`least`), surrogates, and what is beyond U+10FFFF. */
size_t characters_read(const char *text, size_t count, long *code)
{
  static const long least[] = { 0, 0x80, 0x800, 0x10000 };      /* that need this many further bytes */
  const unsigned char *bytes = (const unsigned char *)text;
  size_t more = bytes[0] < 0x80 ? 0 : bytes[0] < 0xc0 ? 4 : bytes[0] < 0xe0 ? 1 : bytes[0] < 0xf0 ? 2 : bytes[0] < 0xf8 ? 3 : 4;
  *code = -1;
  if (more >= count || more == 4) return 1;
  long value = more == 0 ? bytes[0] : bytes[0] & (0x3f >> more);
  for (size_t i = 1; i <= more; i++) {
    if ((bytes[i] & 0xc0) != 0x80) return 1;
    value = value << 6 | (bytes[i] & 0x3f);
  }
  if (value < least[more] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 1;
  *code = value;
  return more + 1;
}

static int is_in(const long (*ranges)[2], size_t count, long code)
{
  for (size_t i = 0; i < count; i++) if (code >= ranges[i][0] && code <= ranges[i][1]) return 1;
  return 0;
}

/* Blocks rather than single characters: a table of all of Unicode would be larger than the program, and a wrong width shifts a column of
 * the table for one line. */
int characters_width(long code)
{
  static const long none[][2] = { { 0, 0x1f }, { 0x7f, 0x9f }, { 0x300, 0x36f }, { 0x200b, 0x200f }, { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f },
                                  { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff } };
  static const long wide[][2] = { { 0x1100, 0x115f }, { 0x2e80, 0x303e }, { 0x3041, 0x4dbf }, { 0x4e00, 0xa4cf }, { 0xa960, 0xa97f },
                                  { 0xac00, 0xd7a3 }, { 0xf900, 0xfaff }, { 0xfe30, 0xfe6f }, { 0xff00, 0xff60 }, { 0xffe0, 0xffe6 },
                                  { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1faff }, { 0x20000, 0x3fffd } };
  if (is_in(none, sizeof none / sizeof *none, code)) return 0;
  return is_in(wide, sizeof wide / sizeof *wide, code) ? 2 : 1;
}

/* ECMA-48: ESC [ and parameters up to a byte from @ to ~; ESC ] and a text up to BEL or ESC \; ESC and one byte. */
size_t characters_control(const char *text, size_t count)
{
  size_t at = 2;
  if ((unsigned char)text[0] >= ' ' && text[0] != 0x7f) return 0;
  if (text[0] != '\033' || count < 2) return 1;
  if (text[1] == '[') {
    while (at < count && (text[at] < '@' || text[at] > '~')) at++;
    return at < count ? at + 1 : count;
  }
  if (text[1] != ']') return 2;
  while (at < count && text[at] != '\a' && text[at] != '\033') at++;
  if (at < count && text[at] == '\033') at++;
  return at < count ? at + 1 : count;
}
