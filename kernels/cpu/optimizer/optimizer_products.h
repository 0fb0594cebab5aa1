/* optimizer_products.h: the variant "products" of the optimizer ops, see optimizer_products.c. */
#ifndef FLOW_CPU_OPTIMIZER_OPTIMIZER_PRODUCTS_H
#define FLOW_CPU_OPTIMIZER_OPTIMIZER_PRODUCTS_H

#include "cpu/optimizer/optimizer_update.h"

#define products_cost          FLOW_ISA_NAME(optimizer_products_cost)
#define products_shared_bytes  FLOW_ISA_NAME(optimizer_products_shared_bytes)
#define products_scratch_bytes FLOW_ISA_NAME(optimizer_products_scratch_bytes)
#define products_parts         FLOW_ISA_NAME(optimizer_products_parts)
#define products_run           FLOW_ISA_NAME(optimizer_products_run)

/* The functions of the variant (kernels.h): float32 calls with products. WHOLE, two phases. */
double      products_cost(const flow_call *call);
size_t      products_shared_bytes(const flow_call *call);
size_t      products_scratch_bytes(const flow_call *call);
int64_t     products_parts(const flow_call *call, int phase);
flow_status products_run(const flow_call *call, int phase, int64_t begin, int64_t end);

#endif
