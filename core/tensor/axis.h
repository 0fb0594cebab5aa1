/* axis.h: axes as messages name them. C counts axes from 0; users of Lua count from 1, and messages do as they do. */
#ifndef FLOW_TENSOR_AXIS_H
#define FLOW_TENSOR_AXIS_H

/* -1 stays the last one. */
static inline int flow_axis_number(int axis) { return axis < 0 ? axis : axis + 1; }

#endif
