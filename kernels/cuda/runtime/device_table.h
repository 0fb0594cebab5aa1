/* device_table.h: the table of kernels, what is known of ops, and the sentences for faults. */
#ifndef FLOW_CUDA_RUNTIME_DEVICE_TABLE_H
#define FLOW_CUDA_RUNTIME_DEVICE_TABLE_H

#include "accelerator.h"
#include "cuda/runtime/fault.h"
#include "ops/op.h"

extern const flow_kernel *const flow_cuda_kernels[FLOW_OP_COUNT];
extern const unsigned char flow_cuda_mixes_half_floats[FLOW_OP_COUNT];      /* see flow_device */

const char *flow_cuda_op_name(int op);
int         flow_cuda_op_is_random(int op);        /* its kernels read call->scalars */
int         flow_cuda_op_is_effect(int op);        /* they write inputs, unless there is a fault */
int flow_cuda_writes_input(const flow_call *call, int i); /* whether i is one of those */
int         flow_cuda_op_checks(int op);           /* they may raise a fault */

/* The sentence for what a kernel found in its data; FLOW_OK for FAULT_NONE, FLOW_ABORTED for FAULT_ELSEWHERE. */
flow_status flow_cuda_raise(const flow_device_fault *fault);

/* As accelerator.h says. approval.c */
flow_status flow_cuda_approve(flow_queue *queue, double *votes);
flow_status flow_cuda_require_approval(flow_queue *queue, double *votes, int all);
/* As accelerator.h says. constant.c */
flow_status flow_cuda_fill_operand(flow_queue *queue, const flow_operand *to, double value);
/* As accelerator.h says. batches.c */
flow_status flow_cuda_take_batch(flow_queue *queue, const flow_batch_table *tables, int count, const int64_t *order, int64_t order_count,
                                 int64_t rows, const flow_batch_step *step);

/* The plugin's functions: runtime_cuda.c. */
extern const flow_accelerator_table flow_cuda_table;

#endif
