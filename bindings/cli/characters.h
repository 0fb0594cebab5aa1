/* characters.h: texts of programs, which may hold anything, character by character. */
#ifndef FLOWLUA_CHARACTERS_H
#define FLOWLUA_CHARACTERS_H

#include <stddef.h>

/* Reads the first character of `count` bytes, at least one: returns its bytes, and *code; of a byte that is not UTF-8 (RFC 3629): 1 and
 * -1. */
size_t characters_read(const char *text, size_t count, long *code);

/* How many columns a terminal takes for it: 0 for control and combining characters, 2 for wide ones (East Asian Width W and F of Unicode's
 * tables, and pictures), else 1. */
int    characters_width(long code);

/* How many bytes at the beginning of a text only tell a terminal what to do: a control character or an escape sequence; 0: a character. */
size_t characters_control(const char *text, size_t count);

#endif
