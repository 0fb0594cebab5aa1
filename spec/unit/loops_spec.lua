-- loops_spec.lua: loops of a plan: what golden values do not say (spec/golden/loops_spec.lua). Each is compared with the same
-- rounds written out.
require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"

local C, layers = native.C, flow.layers

local function normal(shape, seed, dtype) return flow.random.normal(shape, { seed = seed }):to(dtype or "float32") end

local function near(expected, found, tolerance, what)
  assert.same({ unpack(expected.shape) }, { unpack(found.shape) }, what)
  local distance = (expected:to "float64" - found:to "float64"):abs():max():item()
  assert.is_true(distance <= (tolerance or 1e-6), ("%s: %g"):format(what or "", distance))
end

local function plan_of(f)
  local _, entry = next(f.plans)
  return native.text(C.flow_plan_describe, entry.plan)
end

local function lines(text) return select(2, text:gsub("\n", "\n")) end

-- f(...), the gradients of its sum, and what they are where rounds are written out.
local function both(run, given)
  local results = {}
  for i, unroll in ipairs { false, true } do
    results[i] = { flow.fn(function(...)
      local sources = { ... }
      local tape, out = flow.GradientTape(), nil
      tape:watch(sources)
      local loss = tape:record(function()
        out = { run(unroll, unpack(sources)) }
        local sum = 0
        for _, t in ipairs(out) do sum = sum + (t * t):to("float32"):sum() end
        return sum
      end)
      for _, gradient in ipairs(tape:gradient(loss, sources)) do out[#out + 1] = gradient end
      return unpack(out)
    end)(unpack(given)) }
  end
  return unpack(results)
end

local function assert_same(run, given, tolerance)
  local looped, written_out = both(run, given)
  assert.is_true(#looped > 0)
  for i, t in ipairs(looped) do near(written_out[i], t, tolerance, "result " .. i) end
end

describe("a loop", function()
  it("is a plan of one size, with its gradient, for any number of rounds", function()
    local w, sizes = flow.Variable(normal({ 4, 4 }, 1) * 0.5), {}
    for i, rounds in ipairs { 10, 100, 1000 } do
      local f = flow.fn(function(x)
        local tape = flow.GradientTape()
        local loss = tape:record(function()
          return flow.scan(function(c, row) return (c:matmul(w) + row):tanh() end, flow.zeros { 2, 4 }, x):sum()
        end)
        return tape:gradient(loss, w)
      end)
      f(normal({ rounds, 2, 4 }, 2))
      sizes[i] = lines(plan_of(f))
    end
    assert.same({ sizes[1], sizes[1], sizes[1] }, sizes)
    assert.is_true(sizes[1] < 20, sizes[1])
  end)

  it("calls its function once, but where it is written out", function()
    local calls = 0
    local function f(x, unroll)
      return flow.scan(function(c, row)
        calls = calls + 1
        return c + row
      end, flow.zeros { 2 }, x, { unroll = unroll })
    end
    flow.fn(function(x) return f(x) end)(flow.ones { 9, 2 })
    assert.equal(1, calls)
    flow.fn(function(x) return f(x, true) end)(flow.ones { 9, 2 })
    assert.equal(10, calls)
  end)

  it("is what its rounds are, for states, rows and results of many kinds", function()
    local function swap(unroll, x, a, b)      -- states that change places, one that stays, rows as results
      local ys, state = flow.scan(function(s, row) return { s[2], s[1] + row, s[3] }, { s[1] * row, row, s[3] } end, { a, b, a }, x,
        { unroll = unroll })
      return ys[1], ys[2], ys[3], state[1], state[2], state[3]
    end
    assert_same(swap, { normal({ 5, 3 }, 1), normal({ 3 }, 2), normal({ 3 }, 3) })
    local function without_rows(unroll, a, b)
      local ys, state = flow.scan(function(c) return c * b end, a, nil, { length = 4, unroll = unroll, reverse = true })
      return ys, state
    end
    assert_same(without_rows, { normal({ 3 }, 1), normal({ 3 }, 2) })
    local function counts(unroll, x)      -- a state of integers
      local _, state = flow.scan(function(s, row) return { s[1] + 1, s[2] * 0.5 + row * s[1]:to "float32" } end,
        { flow.tensor(1, { dtype = "int32" }), flow.zeros { 3 } }, x, { unroll = unroll })
      return state[2]
    end
    assert_same(counts, { normal({ 6, 3 }, 1) })
    local function constant(unroll, x)      -- results that no op made
      local ones = flow.ones { 3 }
      local ys, state = flow.scan(function(c, row) return c, { ones, row } end, flow.zeros { 3 }, x, { unroll = unroll })
      return ys[1] * ys[2], state
    end
    assert_same(constant, { normal({ 4, 3 }, 1) })
  end)

  it("stands in a loop", function()
    assert_same(function(unroll, x, w)
      return flow.scan(function(c, rows)
        local inner = flow.scan(function(d, row) return (d * w + row * c):tanh() end, c, rows, { unroll = unroll })
        return inner:mean(1), inner
      end, flow.ones { 3 }, x, { unroll = unroll })
    end, { normal({ 3, 4, 3 }, 1), normal({ 3 }, 2) }, 1e-5)
  end)

  it("takes floats of 16 and 64 bits", function()
    for dtype, tolerance in pairs { float64 = 1e-14, bfloat16 = 0.04, float16 = 0.005 } do
      assert_same(function(unroll, x, w)
        return flow.scan(function(c, row) return (c * w + row):tanh() end, flow.zeros({ 3 }, { dtype = dtype }), x, { unroll = unroll })
      end, { normal({ 6, 3 }, 1, dtype), normal({ 3 }, 2, dtype) }, tolerance)
    end
  end)

  it("goes over any number of rows of the batch, also none, by any number of threads", function()
    local w = flow.Variable(normal({ 8, 8 }, 1) * 0.3)
    local f = flow.fn(function(x)
      local tape = flow.GradientTape()
      local ys
      local loss = tape:record(function()
        local steps = x:transpose { 2, 1, 3 }
        ys = flow.scan(function(c, row) return (c:matmul(w) + row):tanh() end, flow.zeros_like(steps[1]), steps)
        return (ys * ys):sum()
      end)
      return ys:transpose { 2, 1, 3 }, tape:gradient(loss, w)
    end)
    local x, before = normal({ 33, 5, 8 }, 2), flow.config.get_threads()
    local whole, gradient = f(x)
    near(whole[{ { 1, 7 } }], (f(x[{ { 1, 7 } }])), 1e-6)
    near(flow.zeros { 8, 8 }, (select(2, f(x[{ { 1, 0 } }]))), 0)
    for threads = 1, 3 do
      flow.config.set_threads(threads)
      local again, same = f(x)
      near(whole, again, 0, threads .. " threads")
      near(gradient, same, 0, threads .. " threads")
    end
    flow.config.set_threads(before)
  end)

  it("draws its own numbers in each round, and the same again for its gradient", function()
    local f = flow.fn(function(x)
      local tape = flow.GradientTape()
      tape:watch(x)
      local ys
      local loss = tape:record(function()
        ys = flow.scan(function(c, row) return c, row * flow.random.uniform { 64 } end, flow.zeros {}, x)
        return ys:sum()
      end)
      return ys, tape:gradient(loss, x)
    end)
    local ys, gradient = f(flow.ones { 3, 64 })
    near(ys, gradient, 0)
    assert.is_true((ys[1] - ys[2]):abs():max():item() > 0.1)
    assert.is_true((ys[2] - ys[3]):abs():max():item() > 0.1)
    assert.is_true((ys - f(flow.ones { 3, 64 })):abs():max():item() > 0.1)
    local dropout = layers.Dropout(0.5)
    local masks = flow.fn(function(x)
      return flow.scan(function(c, row) return c, dropout(row, { training = true }) end, flow.zeros {}, x)
    end)
    local found = masks(flow.ones { 2, 64 })
    assert.is_true((found[1] - found[2]):abs():max():item() > 0)
  end)

  it("is written out where a round writes variables or adds losses", function()
    local count = flow.Variable(0, { trainable = false })
    local f = flow.fn(function(x)
      return flow.scan(function(c, row)
        count:assign_add(1)
        return c + row * count
      end, flow.zeros { 2 }, x)
    end)
    assert.same({ { 1, 1 }, { 3, 3 }, { 6, 6 } }, f(flow.ones { 3, 2 }):totable())
    assert.equal(3, count:item())
    local Adding = layers.Layer:extend "Adding"
    function Adding:call(x)
      return flow.scan(function(c, row)
        self:add_loss(row:sum())
        return c + row
      end, flow.zeros { 2 }, x)
    end
    local adding = Adding()
    assert.equal(6, flow.fn(function(x)
      adding(x)
      local sum = 0
      for _, loss in ipairs(adding.losses) do sum = sum + loss end
      return sum
    end)(flow.ones { 3, 2 }):item())
  end)

  it("reads variables as they are when it stands, and gives their gradients inside a round as well", function()
    local v = flow.Variable(2)
    local f = flow.fn(function(x)
      v:assign(v + 1)
      return flow.scan(function(c, row) return c + row * v end, flow.zeros {}, x)
    end)
    assert.same({ 3, 6 }, f(flow.ones { 2 }):totable())
    assert.same({ 4, 8 }, f(flow.ones { 2 }):totable())
    local inside = flow.fn(function(x)
      return flow.scan(function(c, row)
        local tape = flow.GradientTape()
        local y = tape:record(function() return row * row * v end)
        return c + tape:gradient(y, v)
      end, flow.zeros {}, x)
    end)
    assert.same({ 1, 5, 14 }, inside(flow.tensor { 1, 2, 3 }):totable())
  end)

  it("refuses states that change, and tensors of a round that are used after it", function()
    local function problem(f) return select(2, pcall(flow.fn(f), flow.ones { 3, 2 })) end
    assert.matches("f made a state of float32 {1, 2} of one of float32 {2}", problem(function(x)
      return flow.scan(function(c) return c:expand_dims(1) end, flow.zeros { 2 }, x)
    end))
    local kept
    assert.matches("is used after the trace that it belongs to", problem(function(x)
      flow.scan(function(c, row)
        kept = row
        return c + row
      end, flow.zeros { 2 }, x)
      return kept + 1
    end))
    assert.matches("no value while f is traced", problem(function(x)
      return flow.scan(function(c, row) return c + row:sum():item() end, flow.zeros { 2 }, x)
    end))
    assert.equal(0, C.flow_trace_depth(native.context))
  end)
end)

describe("a recurrent layer", function()
  local Cell = layers.Layer:extend "Cell"
  function Cell:init(options) self.state_size = options.units end
  function Cell:build(shape)
    self.inner = self:add_weight { name = "inner", shape = { shape[#shape], self.state_size } }
    self.recurrent = self:add_weight { name = "recurrent", shape = { self.state_size, self.state_size } }
  end
  function Cell:call(x, states)
    local output = (x:matmul(self.inner) + states[1]:matmul(self.recurrent)):tanh()
    return output * 2, { output }
  end

  -- Layers of these options, one whose steps are a loop and one whose are written out, with the same weights.
  local function pair(make, options, steps)
    local made = {}
    for i, unroll in ipairs { false, true } do
      local own = { unroll = unroll }
      for key, value in pairs(options) do own[key] = value end
      made[i] = make(own)
      made[i]:build { -1, steps, 3 }
    end
    made[2]:set_weights(made[1]:get_weights())
    return unpack(made)
  end

  local MAKERS = {
    LSTM = function(options)
      options.activation = "relu"
      return layers.LSTM(4, options)
    end,
    GRU = function(options)
      options.recurrent_activation = "hard_sigmoid"
      return layers.GRU(4, options)
    end,
    ["a cell in Lua"] = function(options) return layers.RNN(Cell { units = 4 }, options) end,
    ["cells of both kinds"] = function(options) return layers.RNN({ layers.LSTMCell(3), Cell { units = 4 } }, options) end,
  }

  local function results_of(layer, x, mask)
    return { flow.fn(function(a)
      local tape, outputs = flow.GradientTape { persistent = true }, nil
      tape:watch(a)
      local loss = tape:record(function()
        outputs = layer(a, { mask = mask })
        if flow.is_tensor(outputs) then outputs = { outputs } end
        local sum = 0
        for _, y in ipairs(outputs) do sum = sum + (y * y):sum() end
        return sum
      end)
      local all = { unpack(outputs) }
      local of_weights = tape:gradient(loss, layer.trainable_variables)
      for _, g in ipairs(of_weights) do all[#all + 1] = g end
      all[#all + 1] = tape:gradient(loss, a)
      return unpack(all)
    end)(x) }
  end

  it("gives as a loop what its steps give, with masks, backwards, and all that it returns", function()
    local x = normal({ 3, 6, 3 }, 4)
    local mask = flow.tensor({ { 1, 1, 0, 1, 0, 1 }, { 0, 1, 1, 1, 1, 0 }, { 0, 0, 1, 0, 1, 1 } }, { dtype = "bool" })
    for name, make in pairs(MAKERS) do
      for _, options in ipairs { {}, { return_sequences = true }, { return_sequences = true, go_backwards = true, return_state = true },
          { go_backwards = true }, { return_sequences = true, zero_output_for_mask = true } } do
        local looped, written_out = pair(make, options, 6)
        for _, own in ipairs { false, mask } do
          local expected, found = results_of(written_out, x, own or nil), results_of(looped, x, own or nil)
          assert.equal(#expected, #found)
          for i, t in ipairs(expected) do near(t, found[i], 2e-5, ("%s, result %d"):format(name, i)) end
        end
      end
    end
  end)

  it("has a plan of one size for any number of steps", function()
    MAKERS["with recurrent dropout"] = function(options)
      options.recurrent_dropout, options.dropout = 0.3, 0.2
      return layers.LSTM(4, options)
    end
    for name, make in pairs(MAKERS) do
      local layer, sizes = make { return_sequences = true }, {}
      for i, steps in ipairs { 4, 40 } do
        local f = flow.fn(function(x)
          local tape = flow.GradientTape()
          local loss = tape:record(function() return layer(x, { training = true }):sum() end)
          return tape:gradient(loss, layer.trainable_variables)
        end)
        f(normal({ 2, steps, 3 }, 1))
        sizes[i] = lines(plan_of(f))
      end
      assert.equal(sizes[1], sizes[2], name)
    end
  end)

  it("drops the same in all steps where it is Keras' cell that drops", function()
    local rnn = layers.RNN(layers.SimpleRNNCell(32, { recurrent_dropout = 0.5, activation = "linear", kernel_initializer = "zeros",
      recurrent_initializer = "identity" }))
    rnn:build { -1, 6, 4 }
    local run = flow.fn(function(x, state) return rnn(x, { initial_state = { state }, training = true }) end)
    for _, value in ipairs(run(flow.zeros { 1, 6, 4 }, flow.ones { 1, 32 }):totable()[1]) do
      assert.is_true(value == 0 or math.abs(value - 64) < 1e-4, value)
    end
  end)

  it("trains on several replicas as on one", function()
    flow.config.set_logical_devices("cpu", 3)
    local function train(strategy)
      return strategy.scope(function()
        flow.random.set_seed(3)
        local model = flow.Sequential { layers.Input { 5, 3 }, layers.RNN(Cell { units = 4 }), layers.Dense(1) }
        model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
        model:fit(normal({ 12, 5, 3 }, 1), normal({ 12, 1 }, 2), { batch_size = 5, epochs = 3, shuffle = false, verbose = 0 })
        return model:get_weights()
      end)
    end
    local one = train(flow.distribute.OneDeviceStrategy "cpu:0")
    for i, weight in ipairs(train(flow.distribute.MirroredStrategy { "cpu:0", "cpu:1", "cpu:2" })) do near(one[i], weight, 1e-5) end
  end)
end)

describe("a loop for which there is no memory", function()
  it("is refused, at whatever point it fails, and leaves nothing behind", function()
    local w, x = flow.Variable(normal({ 3, 3 }, 1)), normal({ 4, 3, 2, 3 }, 2)
    local function body(a)
      local tape = flow.GradientTape()
      local loss = tape:record(function()
        local _, state = flow.scan(function(c, rows)
          return flow.scan(function(d, row) return (d:matmul(w) + row):tanh() end, c, rows):mean(1)
        end, flow.ones { 2, 3 }, a)
        return state:sum()
      end)
      return tape:gradient(loss, w)
    end
    local expected, failures, well, before = flow.fn(body)(x), 0, 0, nil
    local function attempt(after)
      local f = flow.fn(body)
      C.flow_fail_allocation(after)
      local ok, result = pcall(f, x)
      C.flow_fail_allocation(-1)
      if ok then near(expected, result, 0) else assert.matches("memory", tostring(result)) end
      return ok
    end
    for after = 0, 20000 do
      local ok = attempt(after)
      assert.equal(0, C.flow_trace_depth(native.context))
      failures, well = failures + (ok and 0 or 1), ok and well + 1 or 0      -- some are made again after a collection
      if well > 200 then break end
      collectgarbage()
      collectgarbage()
      before = before or C.flow_live_bytes()
      assert.equal(before, C.flow_live_bytes(), ("allocation %d"):format(after))
    end
    assert.is_true(failures > 40, failures)
  end)
end)

describe("flow.while_loop", function()
  it("ends in a plan by a tensor's value, after a number of rounds that is known", function()
    local function f(x)
      local rounds, y = unpack(flow.while_loop(function(_, value) return value:sum():lt(100) end,
        function(count, value) return count + 1, value * 2 end, { flow.tensor(0), x }, { maximum_iterations = 20 }))
      return rounds, y
    end
    for _, start in ipairs { 1, 40, 200 } do
      local x = flow.full({ 2 }, start)
      local rounds, y = f(x)
      local found, value = flow.fn(f)(x)
      assert.equal(rounds:item(), found:item())
      near(y, value, 0)
    end
    local most = flow.fn(function(x) return flow.while_loop(function(v) return v:sum():lt(1e9) end, function(v) return v * 2 end, x, 3) end)
    assert.same({ 8 }, most(flow.ones { 1 }):totable())
    assert.matches("give maximum_iterations", select(2, pcall(flow.fn(function(x)
      return flow.while_loop(function(v) return v:sum():lt(9) end, function(v) return v * 2 end, x)
    end), flow.ones { 1 })))
  end)

  it("has a gradient", function()
    local f = flow.fn(function(x)
      local tape = flow.GradientTape()
      tape:watch(x)
      local y = tape:record(function()
        return flow.while_loop(function(v) return v:lt(50) end, function(v) return v * v end, x, { maximum_iterations = 6 })
      end)
      return y, tape:gradient(y, x)
    end)
    local y, gradient = f(flow.tensor(2))
    assert.same({ 256, 8 * 2 ^ 7 }, { y:item(), gradient:item() })
  end)

  it("makes as many rounds of a plan as the condition asks for: a billion would not end", function()
    local f = flow.fn(function(x)
      return unpack(flow.while_loop(function(_, v) return v:sum():lt(100) end, function(count, v) return count + 1, v * 2 end,
        { flow.tensor(0), x }, 1e9))
    end)
    for _, start in ipairs { 1, 40, 200, 1 } do
      local rounds, y = f(flow.full({ 2 }, start))
      local expected = start
      while 2 * expected < 100 do expected = expected * 2 end
      assert.same({ math.log(expected / start) / math.log(2), expected, expected }, { rounds:item(), y[1]:item(), y[2]:item() })
    end
  end)

  it("makes no others in its gradients, of the first and the second order, which would be NaN there", function()
    local function rounds_of(x, limit)      -- x^2 log(limit) + ... + x^2 log(1); one more round would add x^2 log(0)
      return flow.while_loop(function(v) return v:gt(0) end, function(v, y) return v - 1, y + x * x * v:log() end,
        { limit, x * 0 }, 100000)[2]
    end
    local f = flow.fn(function(x, limit)
      local outer, inner = flow.GradientTape(), flow.GradientTape()
      outer:watch(x)
      local gradient = outer:record(function()
        inner:watch(x)
        local y = inner:record(function() return rounds_of(x, limit) end)
        return inner:gradient(y, x)
      end)
      return gradient, outer:gradient(gradient, x)
    end)
    for limit = 0, 4 do
      local sum = 0
      for v = 1, limit do sum = sum + math.log(v) end
      local first, second = f(flow.tensor(1.5), flow.tensor(limit))
      near(first, flow.tensor(3 * sum), 1e-5)
      near(second, flow.tensor(2 * sum), 1e-5)
    end
  end)

  it("does the same with any number of threads", function()
    local before = flow.config.get_threads()
    for _, threads in ipairs { 1, 2, 3 } do
      flow.config.set_threads(threads)
      local f = flow.fn(function(x)
        return flow.while_loop(function(v) return v:mean():lt(50) end, function(v) return v:matmul(flow.eye(64) * 2) end, x, 1e9)
      end)
      local y = f(flow.ones { 96, 64 })
      f:close()
      assert.same({ 64, 64 }, { y:min():item(), y:max():item() })
    end
    flow.config.set_threads(before)
  end)
end)

describe("flow.map", function()
  it("calls its function once in a plan, and is differentiated", function()
    local calls = 0
    local f = flow.fn(function(x, y)
      local tape = flow.GradientTape()
      tape:watch(x)
      local out = tape:record(function()
        return flow.map(function(row)
          calls = calls + 1
          return { row[1] * row[2], row[1] + 1 }
        end, { x, y })
      end)
      return out[1], out[2], tape:gradient(out[1], x)
    end)
    local x, y = normal({ 5, 3 }, 1), normal({ 5, 3 }, 2)
    local product, sum, gradient = f(x, y)
    near(x * y, product, 0) near(x + 1, sum, 0) near(y, gradient, 0)
    assert.equal(1, calls)
  end)
end)
