-- wrong_numbers_spec.lua: what the C API says of numbers and names that it does not know: what was found, and what there is instead.
local flow = require "flow"
local native = require "flow.ffi"

local C, context = native.C, native.context

-- The call must fail with a message that has all of these parts.
local function says(status, ...)
  assert.equal(C.FLOW_INVALID_ARGUMENT, status)
  local text = native.string(C.flow_last_error())
  for _, part in ipairs { ... } do assert.truthy(text:find(part, 1, true), text) end
end

describe("the C API", function()
  local x = flow.ones { 2 }
  local inputs, count = native.pointers { x }
  local out = native.out "flow_tensor"

  it("says which numbers dtypes and ops have", function()
    says(C.flow_tensor_new(-1, 0, nil, out), "a new tensor: dtype number -1 is unknown", "0 to 8", "flow_dtype_find")
    says(C.flow_apply(context, -1, inputs, count, nil, out), "no op number -1", "flow_op_find")
    says(C.flow_apply(context, C.flow_op_find "abs", inputs, 0, nil, out), "abs takes 1 input, found 0")
    says(C.flow_apply(context, C.flow_op_find "add", inputs, 1, nil, out), "add takes 2 inputs, found 1")
    says(C.flow_loss_values(context, -1, nil, native.pointer(x), native.pointer(x), out), "no loss number -1", "flow_loss_find")
    says(C.flow_metric_values(context, -1, nil, native.pointer(x), native.pointer(x), out), "no metric number -1", "flow_metric_find")
  end)

  it("lists the names that there are", function()
    says(C.flow_initialize(context, "glorot_unifrom", nil, 1, native.pointer(x)), 'did you mean "glorot_uniform"?', "zeros")
    says(C.flow_regularize(context, "l3", nil, native.pointer(x), out), '"l3" is not known', "There are", "l1_l2")
    says(C.flow_constrain(context, "none", nil, native.pointer(x), out), '"none" is not known', "max_norm")
    local handle = native.out "flow_function"
    says(C.flow_function_load_image(2, 2, 3, "cubic", 0, 0, 0, handle), 'no interpolation "cubic"', "bicubic", "lanczos3")
    says(C.flow_function_load_image(0, 2, 3, "nearest", 0, 0, 0, handle), "pictures of 0 x 2 pixels", "1 or more")
    local writer = native.out "flow_tensor_writer"
    native.check(C.flow_tensor_writer_new(writer))
    says(C.flow_tensor_writer_save(writer[0], "x", "csv"), "'csv'", "hdf5 and safetensors")
    C.flow_tensor_writer_release(writer[0])
  end)

  it("refuses the wrong number of inputs of a run for each replica, before it asks for memory", function()
    native.check(C.flow_trace_begin(context))
    local dims, rank = native.dims { -1, 2 }
    native.check(C.flow_trace_input(context, 0, rank, dims, out))
    local input = native.tensor(out[0])
    local outputs, number = native.pointers { input + 1 }
    local plan, instance = native.out "flow_plan", native.out "flow_instance"
    native.check(C.flow_trace_end(context, outputs, number, plan))
    native.check(C.flow_instance_new(plan[0], 4, instance))
    says(C.flow_instance_run_each(context, instance[0], nil, -1, out), "the plan takes 1 inputs, found -1")
    says(C.flow_instance_run_rows(context, instance[0], inputs, 0, nil, 0, 1e300), "1e+300 rows are more than")
    says(C.flow_instance_run_rows(context, instance[0], inputs, 0, nil, -1, 0), "the first row is -1, expected")
    C.flow_instance_release(instance[0])
    C.flow_plan_release(plan[0])
  end)
end)
