/* child.h: forked children of tests. */
#ifndef FLOW_SPEC_C_CHILD_H
#define FLOW_SPEC_C_CHILD_H

/* For alarm() in a child, so that one that hangs ends and its test fails. Wall time: a machine that is busy elsewhere, or a build with a
 * sanitizer, takes a minute for what is done in a moment otherwise. Less than scripts/test gives a file. */
enum { CHILD_SECONDS = 300 };

#endif
