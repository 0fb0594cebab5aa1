/* test_fused.c: a chain of elementwise steps in one pass equals the same steps one by one, bit for bit, for every build and
 * for runs shorter and longer than a block; operands and scratch are between guards. */
#include "kernel_runner.h"

/* relu((x * bias + x) - square(x)): five steps over registers 0 = x, 1 = bias. */
static const struct { int op, a, b; } chain[] = {
  { FLOW_OP_mul, 0, 1 }, { FLOW_OP_add, 2, 0 }, { FLOW_OP_square, 0, 0 }, { FLOW_OP_sub, 3, 4 }, { FLOW_OP_relu, 5, 0 },
};
enum { STEPS = sizeof chain / sizeof chain[0] };

static flow_attributes fused_attributes(void)
{
  flow_attributes attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.fused.count = STEPS;
  for (int s = 0; s < STEPS; s++) {
    attributes.fused.steps[s].op = (int16_t)chain[s].op;
    attributes.fused.steps[s].inputs[0] = (uint8_t)chain[s].a;
    attributes.fused.steps[s].inputs[1] = (uint8_t)chain[s].b;
  }
  return attributes;
}

/* The steps by the kernels of the single ops; registers[0] and [1] are given. */
static void run_steps(const flow_device *device, flow_operand *registers)
{
  static const flow_attributes none;
  for (int s = 0; s < STEPS; s++) {
    flow_operand inputs[2] = { registers[chain[s].a], registers[chain[s].b] };
    int count = flow_op(chain[s].op)->min_inputs;
    flow_call call = call_of(chain[s].op, &none, inputs, count, &registers[2 + s], 1);
    assert_int_equal(run_kernel(device->kernels[chain[s].op], &call, ALL_AT_ONCE), FLOW_OK);
  }
}

/* x {rows, columns} and a bias that has its shape, is a row, or is a single column. */
static void check_shape(int rows, int columns, int bias_rows, int bias_columns)
{
  flow_attributes attributes = fused_attributes();
  flow_operand registers[2 + STEPS] = { operand(FLOW_FLOAT32, 2, rows, columns), operand(FLOW_FLOAT32, 2, bias_rows, bias_columns) };
  for (int s = 0; s < STEPS; s++) registers[2 + s] = operand(FLOW_FLOAT32, 2, rows, columns);
  flow_operand found = operand(FLOW_FLOAT32, 2, rows, columns);
  fill(&registers[0], 3);
  fill(&registers[1], 2);
  for (int isa = 0; isa < 3; isa++) {
    const flow_device *device = flow_cpu_device_for(runner_isas[isa]);
    if (!device) continue;
    run_steps(device, registers);
    flow_call call = call_of(FLOW_OP_fused, &attributes, registers, 2, &found, 1);
    memset(found.data, CANARY_BYTE, operand_bytes(&found));
    assert_int_equal(run_kernel(device->kernels[FLOW_OP_fused], &call, ALL_AT_ONCE), FLOW_OK);
    assert_memory_equal(found.data, registers[1 + STEPS].data, operand_bytes(&found));
  }
  for (int r = 0; r < 2 + STEPS; r++) operand_free(&registers[r]);
  operand_free(&found);
}

static void a_chain_equals_its_steps(void **state)
{
  (void)state;
  static const int columns[] = { 1, 7, 16, 127, 129, 511, 512, 513, 5000 };
  for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
    int n = columns[i];
    for (int rows = 1; rows <= 33; rows += 16) {
      check_shape(rows, n, rows, n);
      check_shape(rows, n, 1, n);
      check_shape(rows, n, rows, 1);
      check_shape(rows, n, 1, 1);
    }
  }
}

static void no_elements_are_fine(void **state)
{
  (void)state;
  check_shape(0, 5, 1, 5);
  check_shape(3, 0, 3, 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(a_chain_equals_its_steps), cmocka_unit_test(no_elements_are_fine) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
