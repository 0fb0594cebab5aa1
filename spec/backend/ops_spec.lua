--- Every op of ops.def on the CPU: float32 and 16-bit floats against the same op in float64, integers exactly, gradients
-- against central differences, and the same bits from other memory orders, traces, partial batches and thread counts.
local native = require "flow.ffi"
local flow = require "flow"
local backend = require "spec.support.backend"
local cases = require "spec.backend.cases"

local C = native.C
local ROWS, FEW = backend.ROWS, backend.FEW
local records = backend.records()

--- Tolerances by dtype: 1e-5 is some 80 units in the last place of float32; 16-bit results are rounded once.
local HALVES = { float16 = 1e-3, bfloat16 = 8e-3 }

local function cast_all(inputs, dtype)
  local list = {}
  for i, t in ipairs(inputs) do list[i] = t.dtype:find("float") and t:to(dtype) or t end
  return list
end

--- A maximum's place among pixels that 16 bits cannot tell apart: where the device pools what it has rounded, a few are others.
local function mostly_equal(expected, actual, what)
  local e, a, others = expected:flatten():totable(), actual:to("cpu"):flatten():totable(), 0
  assert.equal(#e, #a)
  for i = 1, #e do if e[i] ~= a[i] then others = others + 1 end end
  assert.is_true(others <= 0.02 * #e, ("%s: %d of %d differ"):format(what, others, #e))
end

--- Results of a run in `dtype` against those of the same values in float64.
local function against_float64(case, rows, dtype, tolerance)
  local inputs = backend.inputs(case, rows, dtype)
  local actual = backend.run(case, inputs, rows, dtype)
  local expected = backend.run(case, cast_all(inputs, "float64"), rows, "float64")
  assert.equal(#expected, #actual)
  for i, e in ipairs(expected) do
    local a = actual[i]
    local wanted = case.output_dtype or (e.dtype == "float64" and dtype or e.dtype)
    assert.equal(wanted, a.dtype)
    if dtype:find("16") and case.op == "convolution" and i == 2 then
      mostly_equal(e, a, "output 2")
    elseif a.dtype == "bool" or not a.dtype:find("float") then
      backend.near(e, a, 0, "output " .. i)
    else
      backend.near(e, a, tolerance, "output " .. i)
    end
  end
end

--- The case as a traced function of its inputs.
local function traced(case, dtype)
  return flow.fn(function(...)
    return unpack(backend.run(case, { ... }, backend.batched(case) and -1 or 0, dtype))
  end)
end

local function same_or_near(case)
  return case.rounding and backend.near or backend.identical
end

--- Ops without their own case, and why.
local exceptions = {
  fused = "its steps are chosen when a plan is made: the chains below run them",
  attention_gradient = "made by plans: spec/unit/attention_blocks_spec.lua runs it",
  attention = "made by plans: spec/unit/attention_blocks_spec.lua runs it",
  gather_dense = "of float32 only, made by plans: spec/unit/gather_dense_spec.lua runs it",
  gather_sum = "of float32 only, made by plans: spec/unit/gather_sum_spec.lua runs it",
  transpose_filters = "made by plans: spec/c/test_cuda_filters.c and spec/unit/transpose_filters_spec.lua run it",
  casts = "of float32 only, made by plans: spec/c/test_cuda_casts.c and spec/unit/half_floats_spec.lua run it",
  batch_norm_relu = "made by plans: spec/c/test_cuda_batch_norm.c and spec/unit/batch_norm_relu_spec.lua run it",
  convolution_gradient_relu = "made by plans: spec/c/test_cuda_library.c and spec/unit/relu_gradient_spec.lua run it",
  quantize = "of bytes: spec/c/test_quantized.c and spec/unit/quantization_spec.lua run it",
  quantize_weights = "of bytes, too", quantized_convolution = "of bytes, too",
  separable_convolution = "of float32 only, made by plans: spec/unit/fuse_convolutions_spec.lua and spec/c/test_pieces.c run it",
  convolution_add = "of float32 only, made by plans: spec/unit/fuse_convolutions_spec.lua and spec/c/test_pieces.c run it",
  global_rows = "what replicas are told of a batch: spec/dist/training_spec.lua runs it",
  all_gather = "made by plans: spec/c/test_replicas.c runs it",
  loop = "made by flow_loop_end: spec/golden/loops_spec.lua and spec/unit/loops_spec.lua run it, and differentiate it",
  row_share = "what replicas are told of a batch: spec/dist/training_spec.lua runs it",
}

describe("the cases", function()
  it("cover every op", function()
    local covered, missing = {}, {}
    for name in pairs(exceptions) do covered[name] = true end
    for _, case in ipairs(cases) do covered[case.op] = true end
    for op = 0, C.flow_op_count() - 1 do
      local name = native.string(C.flow_op_name(op))
      if not covered[name] then missing[#missing + 1] = name end
      assert.truthy(records[name], name .. " is not in ops.def")
    end
    assert.same({}, missing)
  end)

  it("check the gradient of every op that has a rule", function()
    local checked, missing = {}, {}
    for _, case in ipairs(cases) do
      if case.gradient ~= false then checked[case.op] = true end
    end
    for name, record in pairs(records) do
      if record.gradient and not checked[name] and not exceptions[name] then missing[#missing + 1] = name end
    end
    assert.same({}, missing)
  end)
end)

describe("an output that nobody reads", function()
  --- Output `position` alone, in a trace, equals the eager one for the whole batch and a part of it.
  local function alone(op, inputs, attributes, position)
    local f = flow.fn(function(x) return backend.apply(op, { x, unpack(inputs, 2) }, attributes)[position] end)
    for _, rows in ipairs { 130, 3 } do
      local x = inputs[1][{ { 1, rows } }]
      backend.identical(backend.apply(op, { x, unpack(inputs, 2) }, attributes)[position], f(x), rows .. " rows")
    end
    assert.equal(1, f.traces)
  end

  it("does not disturb the others", function()
    local x = backend.uniform({ 130, 6, 6, 5 }, 1, -1, 1):to("float32")
    local pool = { pool = { size = { 2, 2 }, stride = { 2, 2 } } }
    alone("max_pool", { x }, pool, 2)
    alone("batch_norm", { x, flow.ones { 5 }, flow.zeros { 5 } }, { normalization = { epsilon = 1e-3 } }, 2)
    alone("convolution", { x, backend.uniform({ 3, 3, 5, 8 }, 2, -1, 1):to("float32") },
      { convolution = { stride = { 1, 1 }, dilation = { 1, 1 }, groups = 1, pool = { 2, 2 }, pool_stride = { 2, 2 } } }, 2)
  end)
end)

describe("chains of elementwise ops", function()
  --- A random chain of `steps` ops over the tensors x, a row and a column; the same one for the same seed.
  local function chain(seed, steps)
    local unary = { "neg", "abs", "square", "relu", "tanh", "sigmoid", "sin", "softplus" }
    local binary = { "add", "sub", "mul", "maximum", "minimum" }
    local plan = backend.uniform({ steps, 4 }, seed, 0, 1):totable()
    return function(x, row, column)
      local values = { x, row, column }
      for _, step in ipairs(plan) do
        local function pick(u, list) return list[1 + math.floor(u * #list * 0.999)] end
        local a = pick(step[2] ^ 0.3, values)
        local name = step[1] < 0.4 and pick(step[3], unary) or pick(step[3], binary)
        values[#values + 1] = step[1] < 0.4 and flow[name](a) or flow[name](a, pick(step[4], values))
        if step[1] > 0.9 then values[#values] = values[#values] + x end
      end
      local sum = x
      for i = 4, #values do sum = sum * 0.5 + values[i] end
      return sum
    end
  end

  it("give the bits of single ops, whatever their length and shape", function()
    for seed = 1, 12 do
      local body = chain(seed, 3 + seed)
      local f = flow.fn(body)
      local row, column = backend.uniform({ 37 }, 2, -1, 1):to("float32"), backend.uniform({ 5, 1 }, 3, -1, 1):to("float32")
      for _, rows in ipairs { 40, 1, 9 } do
        local x = backend.uniform({ rows, 5, 37 }, seed, -2, 2):to("float32")
        backend.identical(body(x, row, column), f(x, row, column), ("chain %d, %d rows"):format(seed, rows))
      end
      assert.truthy(f:describe():find("fused", 1, true))
    end
  end)
end)

for _, case in ipairs(cases) do
  local record, batched = records[case.op], backend.batched(case)
  local differentiable = backend.differentiable(case)

  describe(backend.title(case), function()
    if not case.draws_per_dtype then
      it("in float32 is near float64", function()
        against_float64(case, ROWS, "float32", 1e-5)
        if batched then against_float64(case, backend.many_rows(case), "float32", 1e-5) end
      end)
    end

    if record.VIA_FLOAT and not case.prepare then
      it("in 16-bit floats is near float64", function()
        for dtype, tolerance in pairs(HALVES) do against_float64(case, ROWS, dtype, tolerance) end
      end)
    end

    local whole_numbers = not record.FLOAT_ONLY and not record.TO_FLOAT and not case.run and not case.prepare and case.whole ~= false
    if whole_numbers and #case.inputs > 0 and case.op ~= "sparse_cross_entropy" and case.op ~= "sparse_cross_entropy_gradient" then
      it("is exact for whole numbers", function()
        local exact = {}
        for i, t in ipairs(backend.inputs(case, ROWS, "float64")) do
          exact[i] = (case.inputs[i].dtype or case.inputs[i].classes) and t or (t * 5 + 0.5):floor()
        end
        local expected = backend.run(case, exact, ROWS, "float64")
        for _, dtype in ipairs { "int32", "int64" } do
          local inputs = {}
          for i, t in ipairs(exact) do inputs[i] = t.dtype == "float64" and t:to(dtype) or t end
          for i, actual in ipairs(backend.run(case, inputs, ROWS, dtype)) do
            backend.near(expected[i], actual:to("float64"), 0, dtype .. ", output " .. i)
          end
        end
      end)
    end

    if differentiable and not os.getenv("FLOW_DEVICE") then      -- rules of gradients are the same everywhere
      it("has the gradient of central differences", function()
        local rows, step = 2, 1e-6
        local inputs = backend.inputs(case, rows, "float64")
        local gradients, loss = backend.gradients(case, inputs, rows, "float64")
        for i, position in ipairs(backend.sources(case)) do
          local gradient = gradients[i]
          local values, x = gradient and native.data(gradient), native.data(inputs[position])
          local largest = gradient and gradient:abs():max():item() or 0
          local count = 1
          for _, dim in ipairs(inputs[position].shape) do count = count * dim end
          local stride = math.max(1, math.floor(count / 24))
          for e = 0, count - 1, stride do
            local before = x[e]
            x[e] = before + step
            local above = loss()
            x[e] = before - step
            local difference = (above - loss()) / (2 * step)
            x[e] = before
            local value = values and values[e] or 0
            assert.is_true(math.abs(value - difference) <= 1e-6 * math.max(1, largest, math.abs(difference)),
              ("input %d, element %d: %.10g, difference %.10g"):format(position, e, value, difference))
          end
        end
      end)

      it("has the float64 gradient in float32", function()
        for _, rows in ipairs { ROWS, batched and backend.many_rows(case) or nil } do
          local inputs = backend.inputs(case, rows, "float32")
          local actual = backend.gradients(case, inputs, rows, "float32")
          local expected = backend.gradients(case, cast_all(inputs, "float64"), rows, "float64")
          backend.each(backend.near, expected, actual, #case.inputs, "gradient", 1e-4)
        end
      end)
    end

    if #case.inputs > 0 then
      it("gives the same for strided inputs", function()
        local inputs = backend.inputs(case, ROWS, "float32")
        local expected = backend.run(case, inputs, ROWS, "float32")
        for _, how in ipairs { "columns", "gaps" } do
          local views = {}
          for i, t in ipairs(inputs) do views[i] = backend.strided(t, how) end
          backend.each(backend.near, expected, backend.run(case, views, ROWS, "float32"), #expected, how, record.STRIDED and 1e-6 or 0)
        end
      end)
    end

    if batched and not case.only_float32 then
      it("takes a batch without rows", function()
        local inputs = backend.inputs(case, 0, "float32")
        if case.empty then
          local ok, message = pcall(backend.run, case, inputs, 0, "float32")
          assert.is_false(ok)
          assert.truthy(tostring(message):find(case.op .. ": " .. case.empty, 1, true), message)
          return
        end
        local outputs = backend.run(case, inputs, 0, "float32")
        local full = backend.run(case, backend.inputs(case, ROWS, "float32"), ROWS, "float32")
        local fewer = backend.run(case, backend.inputs(case, FEW, "float32"), FEW, "float32")
        for i, output in ipairs(outputs) do
          local dims = full[i].shape
          for d, dim in ipairs(fewer[i].shape) do dims[d] = dims[d] - (dims[d] - dim) / (ROWS - FEW) * ROWS end
          assert.same(dims, output.shape)
          assert.equal(full[i].dtype, output.dtype)
          if case.op == "sum" then assert.equal(0, output:abs():sum():item()) end
        end
      end)
    end

    if case.traced ~= false and #case.inputs > 0 then
      it("gives the same bits in a trace, and for part of the batch", function()
        local f, compare = traced(case, "float32"), same_or_near(case)
        local whole = backend.inputs(case, ROWS, "float32")
        for _, rows in ipairs { ROWS, batched and FEW or nil, batched and backend.many_rows(case) or nil } do
          local inputs = rows <= ROWS and backend.rows(case, whole, 1, rows) or backend.inputs(case, rows, "float32")
          local expected = backend.run(case, inputs, rows, "float32")
          backend.each(compare, expected, { f(unpack(inputs)) }, #expected, rows .. " rows, output", case.rounding)
        end
        if batched then assert.equal(1, f.traces) end
      end)
    end

    if differentiable and case.traced ~= false then
      it("has the same gradient in a trace, and for part of the batch", function()
        local function gradients(inputs, rows)
          local sources, tape = {}, flow.GradientTape()
          for _, position in ipairs(backend.sources(case)) do sources[#sources + 1] = inputs[position] end
          tape:watch(sources)
          local loss = tape:record(function()
            local outputs = backend.run(case, inputs, rows, "float32")
            local total = 0
            for i = 1, case.all_outputs and #outputs or 1 do total = total + (outputs[i] * outputs[i]):sum() end
            return total
          end)
          return tape:gradient(loss, sources)
        end
        local f = flow.fn(function(...) return gradients({ ... }, batched and -1 or 0) end)
        local whole = backend.inputs(case, ROWS, "float32")
        for _, rows in ipairs { ROWS, batched and FEW or nil } do
          local inputs = backend.rows(case, whole, 1, rows)
          backend.each(backend.near, gradients(inputs, rows), f(unpack(inputs)), #case.inputs, rows .. " rows, gradient", 1e-5)
        end
        if batched then assert.equal(1, f.traces) end
      end)
    end

    it("gives the same bits with one thread and with two", function()
      local rows = batched and backend.many_rows(case) or ROWS
      local inputs = backend.inputs(case, rows, "float32")
      local results, gradients = {}, {}
      for threads = 1, 2 do
        flow.config.set_threads(threads)
        results[threads] = backend.run(case, inputs, rows, "float32")
        gradients[threads] = differentiable and backend.gradients(case, inputs, rows, "float32") or {}
      end
      backend.each(backend.identical, results[1], results[2], #results[1], "output")
      backend.each(backend.identical, gradients[1], gradients[2], #case.inputs, "gradient")
    end)
  end)
end
