--- collected_spec.lua: what a function of a script uses is collected once the script has lost it, whatever the function was given to:
--- classes, steps, data sets, callbacks, tapes, also after errors. The compiler of LuaJIT is off here, since its code keeps functions for a
--- while.
require "spec.support.init"
jit.off()
local flow = require "flow"
local layers = flow.layers

local x, y = flow.zeros { 6, 3 }, flow.zeros { 6, 1 }

local function trained(options, fit)
  local model = flow.Sequential { layers.Input { 3 }, layers.Dense(1, { activation = options.activation }) }
  options.activation, options.loss = nil, options.loss or "mse"
  model:compile(options)
  model:fit(x, y, fit or { verbose = 0 })
  return model
end

--- Classes whose method uses the class itself and `held`: a cycle.
local function extends(parent, method, use)
  return function(held)
    local Own
    Own = parent:extend("Own")
    Own[method] = function(_, value) return held and Own and value end
    use(Own)
  end
end

local function nothing() end
local USES = {
  ["a layer"] = extends(layers.Layer, "call", function(Own) Own()(x) end),
  ["a layer of a model"] = extends(layers.Layer, "call", function(Own)
    local model = flow.Sequential { layers.Input { 3 }, Own(), layers.Dense(1) }
    model:compile { loss = "mse" }
    model:fit(x, y, { verbose = 0 })
  end),
  ["a layer of the library"] = extends(layers.Dense, "call", function(Own) Own(3)(x) end),
  ["wrong calls"] = extends(layers.Layer, "call", function(Own)
    assert.is_false(pcall(Own.call, 3))
    assert.is_false(pcall(function() return Own().calls end))
    assert.is_false(pcall(Own, 3))
  end),
  ["a class with init"] = function(held)
    local Own = layers.Layer:extend("Own")
    function Own:init(units) self.units, self.held = units, { held, Own } end
    function Own.call(_, value) return value end
    Own(3)(x)
  end,
  ["a static"] = function(held)
    local Own = layers.Layer:extend("Own")
    function Own.made() return held and Own() end
    Own.made()
  end,
  ["a model"] = extends(flow.Model, "call", function(Own) Own()(x) end),
  ["a step"] = function(held)
    local Own = flow.Model:extend("Own")
    function Own:train_step(data)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return (self(data[1]) - data[2]):square():mean() * (Own and held[1]) end)
      self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_variables), self.trainable_variables)
      return { loss = loss }
    end
    local input = flow.Input { 3 }
    local model = Own { inputs = input, outputs = layers.Dense(1)(input) }
    model:compile { optimizer = "sgd" }
    model:fit(x, y, { verbose = 0 })
  end,
  ["a loss"] = extends(flow.losses.Loss, "call", nothing),
  ["a metric"] = extends(flow.metrics.Metric, "result", nothing),
  ["an optimizer"] = extends(flow.optimizers.Optimizer, "update_step", nothing),
  ["a schedule"] = extends(flow.optimizers.schedules.LearningRateSchedule, "call", nothing),
  ["an initializer"] = extends(flow.initializers.Initializer, "call", nothing),
  ["a callback"] = extends(flow.callbacks.Callback, "on_epoch_end", function(Own) trained({}, { verbose = 0, callbacks = { Own() } }) end),
  ["a traced function"] = function(held)
    local f
    f = flow.fn(function(value) return f and value * held[1] end)
    f(x)
    f(y)
  end,
  ["a trace that fails"] = function(held)
    local f = flow.fn(function(value) return value:matmul(x) * held[1] end)
    assert.is_false(pcall(f, x))
  end,
  ["a stage of a data set"] = function(held)
    flow.data.Dataset.range(40):map(function(value) return value * held[1] end):batch(2):prefetch(2):iter()()
  end,
  ["a generator"] = function(held)
    local function generate()
      local left = 3
      return function()
        left = left - 1
        if left > 0 then return flow.zeros { 2 } * held[1] end
      end
    end
    flow.data.Dataset.from_generator(generate):batch(2):iter()()
  end,
  ["a generator that fails"] = function(held)
    local count = 0
    local data = flow.data.Dataset.from_generator(function()
      return function()
        count = count + 1
        if count > 1 then error(held) end
        return x
      end
    end)
    assert.is_false(pcall(function() data:batch(4):iter()() end))
  end,
  ["a tape"] = function(held)
    local v = flow.Variable(x)
    flow.GradientTape():record(function() return v * held[1] end)
    assert.is_false(pcall(function() flow.GradientTape():record(function() error(held) end) end))
  end,
  ["scopes of coroutines that were left"] = function(held)
    local tape, scope, device
    tape = coroutine.create(function() flow.GradientTape():record(function() coroutine.yield(held, tape) end) end)
    scope = coroutine.create(function() flow.distribute.MirroredStrategy().scope(function() coroutine.yield(held, scope) end) end)
    device = coroutine.create(function() flow.device("cpu:0", function() coroutine.yield(held, device) end) end)
    for _, thread in ipairs { tape, scope, device } do assert.is_true((coroutine.resume(thread))) end
  end,
  ["an own gradient"] = function(held)
    local f
    f = flow.custom_gradient(function(value) return value * 1, function(gradient) return f and gradient * held[1] end end)
    local v, tape = flow.Variable(x), flow.GradientTape()
    tape:gradient(tape:record(function() return f(v):sum() end), { v })
  end,
  ["functions of compile"] = function(held)
    local function error_of(true_values, predicted) return ((true_values - predicted) * held[1]):square() end
    trained({ loss = error_of, metrics = { error_of }, activation = function(value) return value * held[1] end })
  end,
  ["layers.Lambda"] = function(held)
    flow.Sequential({ layers.Input { 3 }, layers.Lambda(function(value) return value * held[1] end) }):predict(x, { verbose = 0 })
  end,
  ["functions of loops"] = function(held)
    flow.while_loop(function(i) return i:lt(5) end, function(i) return i + held[1] end, { flow.tensor(0) })
    flow.scan(function(state, row) return state + row * held[1] end, flow.zeros { 3 }, x)
    flow.vectorized_map(function(row) return row * held[1] end, x)
  end,
  ["a field of a model"] = function(held)
    local model = trained({})
    model.held, held.model = held, model
    model:predict(x, { verbose = 0 })
  end,
}

describe("what a script's functions use", function()
  for name, use in pairs(USES) do
    it("is collected: " .. name, function()
      local known = setmetatable({}, { __mode = "k" })
      local function with_held()
        local held = { 2 }
        known[held] = true
        use(held)
      end
      with_held()
      for _ = 1, 4 do collectgarbage() end
      assert.is_nil(next(known))
    end)
  end
end)
