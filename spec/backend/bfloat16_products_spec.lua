--- Products under mixed_bfloat16: where the processor multiplies pairs of bfloat16 numbers (AVX512-BF16) they round what they multiply and
--- sum in float32; elsewhere they multiply the float32 numbers. Shapes are random; FLOW_CASES=10000 tries this many.
require "spec.support.init"
local flow = require "flow"
local arguments = require "spec.backend.random_ops.arguments"
local backend = require "spec.support.backend"

local layers = flow.layers
local FIRST, LAST, CASES = (require "spec.support.case_numbers")(60)
local FIFTH = FIRST + math.ceil(CASES / 5) - 1      -- the last number of what is tried for every fifth

--- Whether this process may use AVX512-BF16.
local function rounds()
  local file = io.open "/proc/cpuinfo"
  local text = file and file:read "*a" or ""
  if file then file:close() end
  return flow.isa() == "avx512" and text:find("avx512_bf16", 1, true) ~= nil
end
local ROUNDS = rounds()

local function rounded(x) return x:to("bfloat16"):to("float64") end

--- Whether every element of `found` is act(a b + added) within the rounding of float32 sums.
local function is_product(found, a, b, added, relu)
  local expected, magnitudes = a:matmul(b), a:abs():matmul(b:abs())
  if added then expected, magnitudes = expected + added, magnitudes + added:abs() end
  if relu then expected = expected:maximum(0) end
  return ((found - expected):abs() - magnitudes * 4e-7 - expected:abs() * 2e-7):max():item() <= 0
end

--- Checks found = act(a b + added) with a and b rounded, or, where the processor does not do that, as they are.
local function check(what, found, a, b, added, relu)
  found, a, b = found:to("float64"), a:to("float64"), b:to("float64")
  if ROUNDS then a, b = rounded(a), rounded(b) end
  assert.is_true(is_product(found, a, b, added, relu), what)
end

--- Sizes of which each is now and then large, one, or beside a whole tile.
local function size(draw, most)
  local kind = draw(1, 4)
  if kind == 1 then return draw(1, 9) end
  if kind == 2 then return math.min(most, draw(1, 12) * 16 + draw(-1, 1)) end
  return draw(1, kind == 3 and math.min(most, 70) or most)
end

--- A step of a Dense layer: y, the gradient of sum(y t) to x, and the weights after x^T t was taken from them.
local function dense_step(number)
  local draw = arguments.source(number).draw
  local rows, inputs, units = size(draw, 700), size(draw, 400), size(draw, 200)
  local relu, momentum = draw(1, 2) == 1, draw(1, 2) == 1 and 0.5 or 0
  local dense = layers.Dense(units, {
    dtype = "mixed_bfloat16", bias_initializer = "glorot_uniform", use_bias = draw(1, 2) == 1, activation = relu and "relu" or nil })
  -- Without momentum the products go to the weights, with it through a buffer.
  local optimizer = flow.optimizers.SGD { learning_rate = 1, momentum = momentum }
  local x = backend.uniform({ rows, inputs }, number, -1, 1):to("float32")
  local t = backend.uniform({ rows, units }, number + 1, -1, 1):to("float32")
  dense:build { rows, inputs }
  local step = flow.fn(function(features, factors)
    local tape, y = flow.GradientTape(), nil
    tape:watch(features)
    local loss = tape:record(function()
      y = dense(features):to("float32")
      return (y * factors):sum()
    end)
    local gradients = tape:gradient(loss, { dense.kernel, features })
    optimizer:apply_gradients({ gradients[1] }, { dense.kernel })
    return y, gradients[2]
  end)
  return { dense = dense, x = x, t = t, step = step, relu = relu, momentum = momentum,
           label = ("number %d: %d rows, %d inputs, %d units"):format(number, rows, inputs, units) }
end

local function check_step(case)
  local dense, t = case.dense, case.t
  local w, bias = dense.kernel:value():copy(), dense.use_bias and dense.bias:value():to("float64")
  local y, dx = case.step(case.x, t)
  check(case.label .. ": y", y, case.x, w, bias, case.relu)
  if case.relu then t = flow.where(y:greater(0), t, flow.zeros_like(t)) end
  check(case.label .. ": dx", dx, t, w:transpose())
  check(case.label .. ": weights", dense.kernel:value(), -case.x:transpose(), t, w:to("float64"))
end

--- The names of the kernels that run f.
local function variants(f) return tostring(flow.profile(f)) end

describe("products in bfloat16", function()
  it("are those of rounded numbers, forward, backward and in the optimizer", function()
    for number = FIRST, LAST do
      check_step(dense_step(number))
      if number % 20 == 0 then collectgarbage() end
    end
  end)

  it("have the same bits by any number of threads and with room for more rows", function()
    finally(function() flow.config.set_threads(0) end)
    for number = FIRST, FIFTH do
      local results
      backend.by_threads(function(threads)
        flow.set_random_seed(number)
        local case = dense_step(number)
        if threads == 3 then
          local kernel = case.dense.kernel:value():copy()
          case.step(flow.concat({ case.x, case.x }, 1), flow.concat({ case.t, case.t }, 1))
          case.dense.kernel:assign(kernel)
        end
        local y, dx = case.step(case.x, case.t)
        local found = { y:copy(), dx:copy(), case.dense.kernel:value():copy() }
        results = results or found
        for i = 1, threads == 3 and case.momentum > 0 and 2 or 3 do      -- a second step has a first one's momentum
          backend.identical(results[i], found[i], ("%s, %d threads, result %d"):format(case.label, threads, i))
        end
      end)
    end
  end)

  it("are used by cells that go through steps, whose results stay near those in float32", function()
    for number = FIRST, FIFTH do
      flow.set_random_seed(number)      -- of the weights
      local draw = arguments.source(number).draw
      local kind = ({ "LSTM", "GRU", "SimpleRNN" })[draw(1, 3)]
      local rows, steps, inputs, units = draw(1, 40), draw(1, 7), draw(1, 30), size(draw, 100)
      local reset_after = kind == "GRU" and draw(1, 2) == 1 or nil
      local x = backend.uniform({ rows, steps, inputs }, number, -1, 1):to("float32")
      local results = {}
      for _, policy in ipairs { "float32", "mixed_bfloat16" } do
        local layer = layers[kind](units, { dtype = policy, return_sequences = true, reset_after = reset_after })
        layer:build { rows, steps, inputs }
        if results.weights then layer:set_weights(results.weights) end
        results.weights = layer:get_weights()
        local step = flow.fn(function(features)
          local tape, y = flow.GradientTape(), nil
          local loss = tape:record(function()
            y = layer(features):to("float32")
            return (y * y):sum()
          end)
          return y, unpack(tape:gradient(loss, layer.trainable_variables))
        end)
        results[policy] = { step(x) }
      end
      for i, exact in ipairs(results.float32) do
        local found = results.mixed_bfloat16[i]
        -- Gradients are sums over rows and steps, whose terms may cancel.
        local tolerance = 0.04 * exact:abs():max():item() + 2 ^ -8 * math.sqrt(rows * steps)
        local off = (found - exact):abs():max():item()
        assert.is_true(off <= tolerance,
                       ("number %d: %s of %d units, result %d is off by %g of %g"):format(number, kind, units, i, off, tolerance))
      end
    end
  end)

  it("are named by the profile where the processor has them", function()
    local dense, lstm = layers.Dense(40, { dtype = "mixed_bfloat16" }), layers.LSTM(24, { dtype = "mixed_bfloat16" })
    local x, sequence = flow.ones { 20, 30 }, flow.ones { 20, 3, 30 }
    local run = flow.fn(function(a, b) return dense(a), lstm(b) end)
    run(x, sequence)
    local names = variants(function() run(x, sequence) end)
    local count = select(2, names:gsub(" bfloat16 ", ""))
    assert.equal(ROUNDS and 3 or 0, count, names)
    finally(function() flow.config.set_precision "fast" end)
    flow.config.set_precision "exact"
    local exact = flow.fn(function(a, b) return dense(a), lstm(b) end)
    assert.falsy(variants(function() exact(x, sequence) end):find(" bfloat16 ", 1, true))
  end)
end)
