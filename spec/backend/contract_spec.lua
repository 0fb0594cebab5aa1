--- The contract of numbers: the bits of a run follow from its inputs, the weights, the seeds, the number of rows and the instruction set;
--- never from the capacity of the instance or from what ran before. Under set_precision("exact") a row's results do not depend on the other
--- rows either. FLOW_CASES=10000 tries ten thousand settings of each kind, FLOW_ISA pins the instruction set.
local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local steps = require "flow.train.steps"
local backend = require "spec.support.backend"
local reference = require "spec.support.reference"
local random_net = require "spec.support.nets.random"
local cases = require "spec.backend.cases"

local C = native.C
local case_numbers = require "spec.support.case_numbers"
local MOST_ROWS = 70

--- Ops that see the whole batch at once, and still compute each row of the output from one row of the input.
local products = { matmul = true, dense = true }
local batched = {}
for _, case in ipairs(cases) do
  if backend.batched(case) and case.traced ~= false and #case.inputs > 0 then batched[#batched + 1] = case end
end

--- Numbers for setting `number`: draw(low, high) is whole.
local function source(number)
  local values, at = backend.uniform({ 8 }, 7919 * number + 13, 0, 0.999999):totable(), 0
  return function(low, high)
    at = at % #values + 1
    return low + math.floor(values[at] * (high - low + 1))
  end
end

local function forward(case)
  return flow.fn(function(...)
    local inputs = { ... }
    return unpack(backend.run(case, inputs, -1, "float32"))
  end)
end

local function gradient(case)
  return flow.fn(function(...)
    local inputs, sources = { ... }, {}
    for _, position in ipairs(backend.sources(case)) do sources[#sources + 1] = inputs[position] end
    local tape = flow.GradientTape()
    tape:watch(sources)
    local total = tape:record(function()
      local outputs, sum = backend.run(case, inputs, -1, "float32"), 0
      for i = 1, case.all_outputs and #outputs or 1 do sum = sum + (outputs[i] * outputs[i]):sum() end
      return sum
    end)
    return unpack(tape:gradient(total, sources), 1, #sources)
  end)
end

local function pack(...) return { n = select("#", ...), ... } end

local function compare(expected, actual, what)
  backend.each(backend.identical, expected, actual, expected.n, what)
end

--- The same rows by an instance that was made for more, after it ran those, and by one that was made for them.
local function check_capacity(case, make, number, what)
  local draw = source(number)
  local rows = draw(1, MOST_ROWS)
  local capacity = draw(rows, MOST_ROWS)
  local whole = backend.inputs(case, capacity, "float32")
  local few, roomy, fitting = backend.rows(case, whole, 1, rows), make(case), make(case)
  roomy(unpack(whole))
  fitting(unpack(few))                                 -- as many runs before, for ops that draw
  local label = ("%s, %s, %d rows with room for %d (number %d), output"):format(backend.title(case), what, rows, capacity, number)
  compare(pack(fitting(unpack(few))), pack(roomy(unpack(few))), label)
end

local STRANGE = { 0 / 0, math.huge, -math.huge, 3e38, -2.5e6, 1e-40, -0.0, 2.5e6 }

--- Inputs with numbers of STRANGE in place of floats in all rows but one.
local function strange_but(row, case, inputs, rows, draw)
  local list = {}
  for i, t in ipairs(inputs) do
    list[i] = t
    if case.inputs[i][1] == -1 and t.dtype:find "^float" and t.size > 0 then
      local dims, numbers = { rows }, {}
      for axis = 2, #t.shape do dims[axis] = 1 end
      for k = 1, t.size do numbers[k] = STRANGE[draw(1, #STRANGE)] end
      list[i] = flow.where(flow.arange(rows):eq(row - 1):reshape(dims), t, flow.tensor(numbers, { dtype = t.dtype }):reshape(t.shape))
    end
  end
  return list
end

--- Outputs whose first dimension is the batch's in both runs. strange: the other rows have numbers of STRANGE.
local function check_rows(case, number, strange)
  local draw = source(number)
  local rows = draw(2, MOST_ROWS)
  local row = draw(1, rows)
  local whole = backend.inputs(case, rows, "float32")
  if strange then whole = strange_but(row, case, whole, rows, draw) end
  local one_row = backend.rows(case, whole, row, row)
  local all, alone = backend.run(case, whole, rows, "float32"), backend.run(case, one_row, 1, "float32")
  local f = forward(case)
  local traced, traced_alone = { f(unpack(whole)) }, { f(unpack(one_row)) }
  for i = 1, #all do
    if #all[i].shape > 0 and all[i].shape[1] == rows and alone[i].shape[1] == 1 then
      local label = ("%s, row %d of %d (number %d), output %d"):format(backend.title(case), row, rows, number, i)
      backend.identical(all[i][{ { row, row } }], alone[i], label)
      backend.identical(traced[i][{ { row, row } }], traced_alone[i], label .. ", traced")
    end
  end
end

--- Calls check(case, number) for every case, or as often as FLOW_CASES says; fails with the first messages of all that fail.
local function each_case(list, check)
  local failures, count = {}, 0
  local first, last, tried = case_numbers(#list)
  for number = first, last do
    local ok, message = pcall(check, list[(number - 1) % #list + 1], number)
    if not ok then
      count = count + 1
      if count <= 20 then failures[#failures + 1] = tostring(message) end
    end
    if number % 50 == 0 then collectgarbage() end
  end
  assert(count == 0, ("%d of %d: %s"):format(count, tried, table.concat(failures, "\n")))
end

local function selected(predicate)
  local list = {}
  for _, case in ipairs(batched) do if predicate(case) then list[#list + 1] = case end end
  return list
end

describe("the bits of an op do not depend on the capacity", function()
  for _, precision in ipairs { "fast", "exact" } do
    describe("in " .. precision .. " mode", function()
      setup(function() flow.config.set_precision(precision) end)
      teardown(function() flow.config.set_precision("fast") end)

      it("of its outputs", function()
        each_case(batched, function(case, number) check_capacity(case, forward, number, "forward") end)
      end)

      it("of its gradients", function()
        each_case(selected(backend.differentiable),
          function(case, number) check_capacity(case, gradient, number, "gradient") end)
      end)
    end)
  end
end)

describe("a product of few columns over a long axis", function()
  -- It is split into ranges of that axis, for some numbers of rows into more than for larger ones.
  for _, precision in ipairs { "fast", "exact" } do
    it("does not depend on the capacity, in " .. precision .. " mode", function()
      flow.config.set_precision(precision)
      finally(function() flow.config.set_precision("fast") end)
      local first, _, count = case_numbers(300)
      for number = first, first + math.ceil(count / 50) - 1 do
        local draw = source(number)
        local k, n = draw(1024, 9000), number % 3 == 0 and 128 or draw(1, 300)
        local capacity = number % 3 == 0 and 97 or draw(1, 200)
        local rows = number % 3 == 0 and 96 or draw(1, capacity)
        local w, x = flow.random.normal({ k, n }, { seed = number }), flow.random.normal({ capacity, k }, { seed = number + 1 })
        local function make() return flow.fn(function(t) return t:matmul(w) end) end
        local few, roomy = x[{ { 1, rows } }]:copy(), make()
        roomy(x)
        local label = ("%d rows with room for %d, {%d, %d}"):format(rows, capacity, k, n)
        backend.identical(make()(few), roomy(few), label)
        if precision == "exact" then backend.identical(few:matmul(w)[{ { rows, rows } }], few[{ { rows, rows } }]:matmul(w), label) end
        collectgarbage()
      end
    end)
  end
end)

describe("a product of matrices that each row has of its own", function()
  -- {n, ...} . {n, ...}; the second has sums that are split. Plans do them by chunks of rows, which follow from the capacity.
  for _, shapes in ipairs { { { 4, 128, 32 }, { 4, 32, 128 } }, { { 64, 1024 }, { 1024, 64 } }, { { 1, 300 }, { 300, 5 } } } do
    it(("{%s} has the bits of the op alone, whatever the capacity"):format(table.concat(shapes[1], ", ")), function()
      local a = flow.random.normal({ 9, unpack(shapes[1]) }, { seed = 1 })
      local b = flow.random.normal({ 9, unpack(shapes[2]) }, { seed = 2 })
      local roomy = flow.fn(function(x, y) return x:matmul(y) end)
      roomy(a, b)
      for _, rows in ipairs { 1, 2, 5, 9 } do
        local few_a, few_b = a[{ { 1, rows } }]:copy(), b[{ { 1, rows } }]:copy()
        backend.identical(few_a:matmul(few_b), roomy(few_a, few_b), rows .. " rows with room for 9")
      end
    end)
  end
end)

describe("under set_precision(\"exact\")", function()
  setup(function() flow.config.set_precision("exact") end)
  teardown(function() flow.config.set_precision("fast") end)

  it("a row of an op does not depend on the other rows", function()
    each_case(selected(function(case) return backend.records()[case.op].kind ~= "WHOLE" or products[case.op] end),
      function(case, number) check_rows(case, number, false) end)
  end)

  it("a row of an op does not depend on infinities, large numbers and NaN in the other rows", function()
    each_case(selected(function(case) return backend.records()[case.op].kind ~= "WHOLE" or products[case.op] end),
      function(case, number) check_rows(case, number, true) end)
  end)

  it("a picture alone is predicted as it is among others", function()
    local first, last = case_numbers(12)
    for number = first, last do
      local net, shape, _, _ = random_net(number)
      flow.set_random_seed(number)
      local model = reference.model(net, shape)
      local draw = source(number)
      local rows = draw(2, 40)
      local row = draw(1, rows)
      local x = backend.uniform({ rows, unpack(shape) }, number, -1, 1):to("float32")
      local label = ("net %d, row %d of %d"):format(number, row, rows)
      local alone = model:predict_on_batch(x[{ { row, row } }]:copy())
      backend.identical(model:predict_on_batch(x)[{ { row, row } }], alone, label)
      backend.identical(model:predict(x, { batch_size = draw(1, rows), verbose = 0 })[{ { row, row } }], alone, label .. ", in batches")
      local strange = strange_but(row, { inputs = { { -1, unpack(shape) } } }, { x }, rows, draw)[1]
      backend.identical(model:predict_on_batch(strange)[{ { row, row } }], alone, label .. ", others strange")
      if number % 10 == 0 then collectgarbage() end
    end
  end)
end)

describe("a step of a random net", function()
  --- The weights after a step on `rows` rows by an instance with room for `capacity`, and its prediction.
  local function run(number, rows, capacity, before)
    local net, shape, classes = random_net(number)
    flow.set_random_seed(number)
    local model = reference.model(net, shape)
    model:compile { optimizer = flow.optimizers.SGD(0.1), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
    local x = backend.uniform({ capacity, unpack(shape) }, number, -1, 1):to("float32")
    local y = backend.uniform({ capacity }, number + 500, 0, classes):floor():to("int32")
    local function train(count)
      local inputs = { x[{ { 1, count } }]:copy(), y[{ { 1, count } }]:copy() }
      local step = steps.get(model, "train", inputs, { x = 1, y = 1, weights = 0 }, capacity)
      C.flow_instance_scalars(step.instance, 5, 3, 0)
      native.check(C.flow_instance_run(native.context, step.instance, native.pointers(inputs), 2, nil))
    end
    if before then
      local weights = model:get_weights()
      for i, w in ipairs(weights) do weights[i] = w:copy() end
      train(capacity)
      model:set_weights(weights)
    end
    train(rows)
    return model:get_weights(), model
  end

  for _, precision in ipairs { "fast", "exact" } do
    it("ends with the same weights whatever its capacity and whatever ran before, in " .. precision .. " mode", function()
      flow.config.set_precision(precision)
      finally(function() flow.config.set_precision("fast") end)
      local first, last = case_numbers(12)
      for number = first, last do
        local draw = source(number)
        local rows = draw(1, 40)
        local capacity = draw(rows, MOST_ROWS)
        local expected, actual = run(number, rows, rows, false), run(number, rows, capacity, draw(0, 1) == 1)
        local label = ("net %d, %d rows with room for %d, weight"):format(number, rows, capacity)
        backend.each(backend.identical, expected, actual, #expected, label)
        if number % 10 == 0 then collectgarbage() end
      end
    end)
  end
end)

describe("a training that goes on right before a smaller last batch", function()
  it("ends with the bits of one that was not interrupted", function()
    local L = flow.layers
    local folder = support.folder()
    local x = flow.random.uniform({ 211, 12, 12, 3 }, { seed = 3 })
    local y = flow.random.uniform({ 211 }, { maxval = 5, dtype = "int32", seed = 4 })
    local function make()
      flow.set_random_seed(11)
      local model = flow.Sequential { L.Input { 12, 12, 3 }, L.Conv2D(9, 3, { padding = "same" }), L.BatchNormalization(), L.ReLU(),
        L.Conv2D(17, 3, { activation = "relu" }), L.MaxPooling2D(), L.Dropout(0.2, { name = "drop" }), L.Flatten(), L.Dense(5) }
      model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
      return model
    end
    local function fit(model, stop)
      local data = flow.data.Dataset.from_tensor_slices { x, y }:batch(48)
      local batches = 0
      local list = { flow.callbacks.BackupAndRestore(folder, { save_freq = 4, delete_checkpoint = false }) }
      if stop then
        list[2] = flow.callbacks.LambdaCallback { on_train_batch_begin = function()
          batches = batches + 1
          if batches == 5 then error("stop") end
        end }
      end
      return model:fit(data, { epochs = 2, verbose = 0, callbacks = stop ~= nil and list or {} })
    end
    local whole = make()
    fit(whole)
    assert.is_false((pcall(fit, make(), true)))
    local resumed = make()
    fit(resumed, false)
    flow.io.rmtree(folder)
    local expected, actual = whole:get_weights(), resumed:get_weights()
    backend.each(backend.identical, expected, actual, #expected, "weight")
  end)
end)
