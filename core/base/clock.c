/* clock.c: time for progress reports, and the width of the terminal that they go to. */
#include "base/status.h"
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* Seconds since some moment of this system's start, not of the calendar: only differences mean something. */
double flow_clock(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* 0: messages do not go to a terminal; 80 where it does not tell its width. */
int flow_terminal_columns(void)
{
  struct winsize size;
  if (!flow_log_stdio() || !isatty(STDOUT_FILENO)) return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}
