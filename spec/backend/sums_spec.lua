--- Sums keep their digits however long they are, along any axis, and their bits follow from values, shape, number of rows and instruction
--- set: not from chunks, threads, capacity, or from whether a plan ran them. FLOW_CASES=10000 tries this many random sums.
require "spec.support.init"
local flow = require "flow"
local precision = require "spec.support.precision"
local backend = require "spec.support.backend"

local FIRST, LAST, COUNT = (require "spec.support.case_numbers")(40)
local DTYPES = { "float32", "float32", "float32", "float64", "float16", "bfloat16", "uint8", "int32", "int8", "bool" }
--- Of a result's own rounding.
local ROUNDING = { float32 = 2 ^ -24, float64 = 2 ^ -50, float16 = 2 ^ -11, bfloat16 = 2 ^ -8 }

local function flat(t) return t:copy():reshape { t.size }:to("float64"):totable() end

--- For each output: { sum =, magnitudes =, squares = sum of squared differences from the mean }, by plain loops.
local function reference(values, dims, reduced)
  local outputs, step, count = {}, {}, 1
  local kept = 1
  for axis = #dims, 1, -1 do
    step[axis] = reduced[axis] and 0 or kept
    if reduced[axis] then count = count * dims[axis] else kept = kept * dims[axis] end
  end
  for i = 1, kept do outputs[i] = { sum = 0, magnitudes = 0, squares = 0 } end
  local function each(visit)
    for i = 0, #values - 1 do
      local rest, output = i, 1
      for axis = #dims, 1, -1 do
        output = output + rest % dims[axis] * step[axis]
        rest = math.floor(rest / dims[axis])
      end
      visit(outputs[output], values[i + 1])
    end
  end
  each(function(o, x) o.sum, o.magnitudes = o.sum + x, o.magnitudes + math.abs(x) end)
  each(function(o, x) o.squares = o.squares + (x - o.sum / count) ^ 2 end)
  return outputs, count
end

local function near(found, expected, tolerance, label)
  if not (math.abs(found - expected) <= tolerance) then
    error(("%s: %.10g, expected %.10g within %.3g"):format(label, found, expected, tolerance), 0)
  end
end

--- Sum number `number`: shape, axes, dtype, order in memory.
local function random_sum(number)
  local drawn, at = flow.random.uniform({ 32 }, { seed = 31 * number + 7 }):totable(), 0
  local function draw(low, high)
    at = at + 1
    return low + math.floor(drawn[at] * (high - low + 1) * 0.999999)
  end
  local rank, dims, reduced, axes = draw(1, 4), {}, {}, {}
  for axis = 1, rank do dims[axis] = draw(1, ({ 4000, 90, 20, 9 })[rank]) end
  if draw(1, 12) == 1 then dims[draw(1, rank)] = 0 end
  for axis = 1, rank do
    reduced[axis] = draw(1, 2) == 1
    if reduced[axis] then axes[#axes + 1] = axis end
  end
  if #axes == 0 then axes, reduced = { 1 }, { true } end
  local dtype, offset = DTYPES[draw(1, #DTYPES)], draw(0, 3) * 100
  if dtype == "float16" then offset = 0 end      -- whose largest is 65504
  local x = backend.uniform(dims, number, -2 + offset / 10, 3 + offset / 10)
  if dtype == "uint8" or dtype == "bool" then x = x:abs() end
  x = x:to(dtype)
  local order = ({ false, "columns", "gaps" })[draw(1, 3)]
  return { x = order and backend.strided(x, order) or x, packed = x, dims = dims, reduced = reduced, axes = axes, dtype = dtype,
           keepdims = draw(1, 2) == 1, more = draw(0, 50),
           label = ("number %d: %s {%s} over %s, %s"):format(number, dtype, table.concat(dims, ", "), table.concat(axes, ", "),
                                                             order or "packed") }
end

local function check_values(case)
  local expected, count = reference(flat(case.packed), case.dims, case.reduced)
  local is_float = ROUNDING[case.dtype] ~= nil
  local sums = flat(case.x:sum(case.axes, case.keepdims))
  assert.equal(#expected, #sums, case.label)
  for i, o in ipairs(expected) do
    local sum_error = case.dtype == "float64" and 1e-13 or 2e-7
    near(sums[i], o.sum, is_float and sum_error * o.magnitudes + ROUNDING[case.dtype] * math.abs(o.sum) or 0, case.label .. ", sum")
  end
  if count == 0 or not is_float then return end
  local means = flat(case.x:mean(case.axes))
  local variances = case.dtype == "float32" and flat(case.x:var(case.axes))
  for i, o in ipairs(expected) do
    local mean = o.sum / count
    local mean_error = 3e-7 * o.magnitudes / count + 2 * ROUNDING[case.dtype] * math.abs(mean)
    near(means[i], mean, mean_error, case.label .. ", mean")
    if variances then near(variances[i], o.squares / count, 1e-6 * o.squares / count + mean_error ^ 2, case.label .. ", variance") end
  end
end

local function check_bits(case)
  local function sum(t) return t:sum(case.axes, case.keepdims) end
  local eager = sum(case.packed)
  local dims = { unpack(case.dims) }
  dims[1] = dims[1] + case.more
  local fitting, roomy = flow.fn(sum), flow.fn(sum)
  roomy(flow.ones(dims, { dtype = case.dtype }))
  backend.by_threads(function(threads)
    backend.identical(eager, sum(case.packed), case.label .. (", %d threads"):format(threads))
    backend.identical(eager, fitting(case.packed), case.label .. (", in a plan, %d threads"):format(threads))
    backend.identical(eager, roomy(case.packed), case.label .. (", with room for %d rows, %d threads"):format(dims[1], threads))
  end)
end

describe("a random sum", function()
  it("is that of doubles", function()
    for number = FIRST, LAST do
      check_values(random_sum(number))
      if number % 50 == 0 then collectgarbage() end
    end
  end)

  it("has the same bits alone, in a plan, with room for more rows, by any number of threads", function()
    finally(function() flow.config.set_threads(0) end)
    for number = FIRST, LAST do
      check_bits(random_sum(number))
      if number % 50 == 0 then collectgarbage() end
    end
  end)

  it("has the same bits whatever else is computed with its rows", function()      -- which decides how many rows are a chunk
    for number = FIRST, FIRST + math.ceil(COUNT / 4) - 1 do
      local rows, columns = 100 + 37 * number % 1501, ({ 1, 3, 10, 33, 300 })[number % 5 + 1]
      local x = backend.uniform({ rows, columns }, number, -1, 2):to "float32"
      local alone = flow.fn(function(t) return (t * 2):sum(1) end)
      local wide = flow.ones { 1, 1, 40 * number % 401 + 1 }
      local among = flow.fn(function(t)
        local y = t * 2
        return y:sum(1), (y:reshape { -1, columns, 1 } * wide):sum { 2, 3 }
      end)
      if number % 20 == 0 then collectgarbage() end
      backend.identical(alone(x), (among(x)), ("%d rows of %d"):format(rows, columns))
    end
  end)
end)

describe("long sums", function()
  local function relative(found, expected, label) near(found / expected, 1, 1e-6, label) end

  it("of equal numbers are exact to the last rounding", function()
    local tenth = flow.full({ 1 }, 0.1):item()
    for _, dims in ipairs { { 1e7 }, { 1, 1e6 }, { 1e6, 1 }, { 1e5, 10 }, { 10, 1e5 }, { 1000, 1000 }, { 20000, 5, 10 } } do
      local x = flow.full(dims, 0.1)
      near(x:sum():item() / (x.size * tenth), 1, 2 ^ -24, "{" .. table.concat(dims, ", ") .. "}")
      near(x:mean():item(), tenth, 2 ^ -27, "mean")
      for axis = 1, #dims do near(x:sum(axis):max():item() / (dims[axis] * tenth), 1, 2 ^ -24, "axis " .. axis) end
    end
    assert.equal(0, flow.full({ 100000 }, 10000.1):var():item())
  end)

  it("of products keep their digits in dot products of any length, in any form", function()
    for _, n in ipairs { 1000, 1e5, 3e6 } do
      local x = flow.full({ n }, 0.1)
      local expected, row = n * x[1]:item() ^ 2, x:reshape { 1, n }
      near(x:matmul(x):item() / expected, 1, 4e-6, "vectors of " .. n)
      near(row:matmul(x:reshape { n, 1 }):item() / expected, 1, 4e-6, "a row and a column of " .. n)
      near(row:matmul(row, { transpose_b = true }):item() / expected, 1, 4e-6, "rows of " .. n)
    end
  end)

  it("of rows that share an index keep their digits", function()
    if precision.on_gpu then return pending "GPUs add rows that share an index as float32, in groups of 64" end
    local rows, tenth = 1e6, flow.full({ 1 }, 0.1):item()
    for _, width in ipairs { 1, 3, 40 } do
      local n = math.floor(rows / width)
      local x, numbers = flow.full({ n, width }, 0.1), flow.random.uniform({ n }, { seed = 5, maxval = 3, dtype = "int32" })
      local expected = flow.bincount(numbers, { minlength = 4 }):to "float64" * tenth
      local function check(found, label)
        found = found:to("float64"):totable()
        for i, sum in ipairs(expected:totable()) do
          for _, column in ipairs(found[i]) do near(column, sum, 2 ^ -24 * sum, ("%s of %d, row %d"):format(label, width, i)) end
        end
      end
      check(flow.segment_sum(x, numbers, { num_segments = 4 }), "segment_sum")
      check(flow.fn(function(a, b) return flow.segment_sum(a, b, { num_segments = 4 }) end)(x, numbers), "segment_sum, traced")
      check(flow.scatter((numbers + 1):expand_dims(-1), x, { 4, width }), "scatter")
      local table_of, tape = flow.Variable(flow.zeros { 4, width }), flow.GradientTape()
      local loss = tape:record(function() return (flow.take(table_of, numbers + 1, 1) * 0.1):sum() end)
      check(tape:gradient(loss, table_of), "the gradient of take")
    end
  end)

  it("of the cells of a window keep their digits", function()
    if precision.on_gpu then return pending "GPUs add the cells of a window as float32" end
    local tenth = flow.full({ 1 }, 0.1):item()
    for _, channels in ipairs { 1, 5, 16, 37 } do
      local x = flow.full({ 1, 300, 400, channels }, 0.1)
      near(flow.average_pool(x, { 300, 400 }):max():item() / tenth, 1, 2e-7, channels .. " channels, one window")
      near(flow.average_pool(x, { 150, 200 }):min():item() / tenth, 1, 2e-7, channels .. " channels, four windows")
    end
  end)

  it("give the variance of numbers far from zero", function()
    local x = flow.random.normal({ 100000 }, { seed = 3 }) + 10000
    local o = reference(flat(x), { 100000 }, { true })[1]
    relative(x:var():item(), o.squares / 100000, "var")
    relative(x:std():item(), math.sqrt(o.squares / 100000), "std")
    relative(x:mean():item(), o.sum / 100000, "mean")
    relative(flow.fn(function(t) return t:var() end)(x):item(), o.squares / 100000, "traced")
  end)

  it("are those of softmax and cross entropy over many classes", function()
    local n = 300000
    local z = flow.full({ 2, n }, 0.1)
    z[{ {}, { 1, 1 } }] = 1.3
    local sum = math.exp(z[{ 1, 1 }]:item() - z[{ 1, 2 }]:item()) + n - 1
    relative(z:softmax()[{ 2, 7 }]:item(), 1 / sum, "softmax")
    relative(z:transpose():copy():softmax(1)[{ 7, 2 }]:item(), 1 / sum, "softmax along the first axis")
    relative(z:log_softmax()[{ 2, 7 }]:item(), -math.log(sum), "log_softmax")
    local loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true }
    relative(loss(flow.ones({ 2 }, { dtype = "int32" }), z):item(), math.log(sum), "sparse_categorical_crossentropy")
  end)

  it("are means of losses and metrics over a million rows", function()
    local rows = 1e6
    local function rows_of(list)
      return flow.zeros { rows, #list } + flow.tensor { list }
    end
    local cases = {
      MeanSquaredError = { { 0.7 }, { 0.3 } }, MeanAbsoluteError = { { 0.7 }, { 0.3 } }, Huber = { { 0.7 }, { 0.3 } },
      LogCosh = { { 0.7 }, { 0.3 } }, Poisson = { { 0.7 }, { 0.3 } }, BinaryCrossentropy = { { 1 }, { 0.3 } },
      CategoricalCrossentropy = { { 0, 1, 0 }, { 0.2, 0.3, 0.5 } }, Hinge = { { 1 }, { 0.3 } }, CosineSimilarity = { { 1, 2 }, { 2, 0.3 } },
    }
    for name, case in pairs(cases) do
      local loss, y_true, y_pred = flow.losses[name](), rows_of(case[1]), rows_of(case[2])
      local one = loss(y_true[{ { 1, 1 } }], y_pred[{ { 1, 1 } }]):item()
      relative(loss(y_true, y_pred):item(), one, name)
      relative(loss(y_true, y_pred, flow.full({ rows }, 0.3)):item(), one * 0.3, name .. ", weighted")
      if flow.metrics[name] then
        local metric = flow.metrics[name]()
        metric:update_state(y_true[{ { 1, 1 } }], y_pred[{ { 1, 1 } }])
        local value = metric:result()
        metric:reset_state()
        metric:update_state(y_true, y_pred, flow.full({ rows }, 0.3))
        metric:update_state(y_true, y_pred)
        relative(metric:result(), value, name .. ", metric")
      end
      collectgarbage()
    end
    local labels, logits = flow.zeros({ rows }, { dtype = "int32" }), rows_of { 0.1, 0.1, 0.1 }
    relative(flow.losses.SparseCategoricalCrossentropy { from_logits = true }(labels, logits):item(), math.log(3), "cross entropy")
  end)

  it("of states of metrics go on after 2^24 rows", function()
    local metric = flow.metrics.Mean()
    metric:update_state(flow.full({ 1 }, 1), flow.full({ 1 }, 2 ^ 25))
    for _ = 1, 200 do metric:update_state(flow.full({ 1 }, 3)) end
    near(metric:result(), (2 ^ 25 + 600) / (2 ^ 25 + 200), 1e-12, "Mean")
  end)

  it("of what Normalization adapts to go on through many batches", function()
    local rows, batches = 1500, {}
    local x = flow.random.normal({ rows, 1 }, { seed = 1 }) + 1000
    for i = 1, rows do batches[i] = x[{ { i, i } }] end
    local layer = flow.layers.Normalization()
    layer:adapt(batches)
    local o = reference(flat(x), { rows }, { true })[1]
    relative(layer.mean:sum():item(), o.sum / rows, "mean")
    relative(layer.variance:sum():item(), o.squares / rows, "variance")
  end)

  it("of no rows are 0 in every column, however many there are", function()
    for _, dtype in ipairs { "float32", "float64", "float16", "bfloat16", "int32", "uint8", "bool" } do
      for _, columns in ipairs { 1, 7, 8, 9, 64, 600, 5000 } do
        local sums = flow.zeros({ 0, columns }, { dtype = dtype }):sum(1)
        assert.same({ columns }, { unpack(sums.shape) })
        assert.equal(0, sums:to("float32"):abs():sum():item())
        assert.same({ 2, columns }, { unpack(flow.zeros({ 2, 0, columns }, { dtype = dtype }):sum(2).shape) })
      end
    end
  end)

  it("of integers are exact", function()
    local x = flow.full({ 3000, 1001 }, 2147483647, { dtype = "int32" })
    assert.equal(2147483647 * 3000, x:sum(1)[5]:item())
    assert.equal(2147483647 * 3000 * 1001, x:sum():item())
    assert.equal(255 * 1e6, flow.full({ 1e6 }, 255, { dtype = "uint8" }):sum():item())
  end)
end)
