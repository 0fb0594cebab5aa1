-- custom_gradient_spec.lua: functions that say themselves what their gradients are: eager, traced, in loops, of a second order, in
-- training. The numbers are those of keras.ops.custom_gradient and tf.custom_gradient for the same functions.
local flow = require "flow"
local support = require "spec.support.init"

local layers = flow.layers

local log1pexp = flow.custom_gradient(function(x)
  local e = flow.exp(x)
  return flow.log(1 + e), function(upstream) return upstream * (1 - 1 / (1 + e)) end
end)

local function near(expected, found)
  found = found:totable()
  assert.equal(#expected, #found)
  for i, value in ipairs(expected) do assert.near(value, found[i], 1e-6 * math.max(1, math.abs(value))) end
end

local function gradient_of(f, x)
  local tape = flow.GradientTape()
  tape:watch(x)
  return tape:gradient(tape:record(f, x), x)
end

describe("custom_gradient", function()
  local function tripled(x) return gradient_of(function(a) return log1pexp(a * 2) * 3 end, x) end

  it("gives the gradients that the function returns, where the usual ones are not numbers", function()
    local x, expected = flow.tensor { 0, 1, 100 }, { 3, 5.284782409667969, 6 }
    near(expected, tripled(x))
    near(expected, flow.fn(tripled)(x))
    near(expected, gradient_of(function(a) return flow.keras.ops.custom_gradient(function(v)
      return flow.softplus(v), function(upstream) return { upstream * flow.sigmoid(v) } end
    end)(a * 2) * 3 end, x))
  end)

  it("takes several arguments, gives several results, and calls may follow each other", function()
    local twice = flow.custom_gradient(function(a, b) return { a * b, a + b }, function(u, v) return u * 10 + v, u * 100 end end)
    local a, b, tape = flow.tensor { 1, 2 }, flow.Variable { 3, 4 }, flow.GradientTape()
    tape:watch(a)
    local loss = tape:record(function()
      local p = twice(a, b)
      local q = twice(p[1], p[2])
      return q[1]:sum() + q[2]:sum() + a:sum()
    end)
    local gradients = tape:gradient(loss, { a, b })
    near({ 211, 211 }, gradients[1])
    near({ 1100, 1100 }, gradients[2])
  end)

  it("has gradients of gradients", function()
    local x = flow.tensor { 0, 1, 2 }
    near({ 0.25, 0.1966119408607483, 0.10499358177185059 }, gradient_of(function(a) return gradient_of(log1pexp, a) end, x))
  end)

  it("counts in loops of a plan, which are written out", function()
    local f = flow.fn(function(x)
      return gradient_of(function(rows)
        local _, last = flow.scan(function(state, row)
          local after = log1pexp(state + row)
          return after, after
        end, flow.zeros {}, rows)
        return last
      end, x)
    end)
    near({ 0.3130412697792053, 0.5962926745414734, 0.8281993269920349 }, f(flow.tensor { 0.1, 0.2, 0.3 }))
  end)

  it("counts in training, on replicas, too", function()
    local Clip = layers.Layer:extend "ClipOfCustomGradient"
    function Clip:init()
      self.clipped = flow.custom_gradient(function(x)
        return x * 1, function(upstream) return flow.clip(upstream, -0.01, 0.01) end
      end)
    end
    function Clip:call(x) return self.clipped(x) end
    for _, eager in ipairs { false, true } do
      local model = flow.Sequential { layers.Input { 4 }, layers.Dense(3, { kernel_initializer = "ones" }), Clip(),
        layers.Dense(1, { kernel_initializer = "ones" }) }
      model:compile { optimizer = flow.optimizers.SGD(1), loss = "mse", run_eagerly = eager }
      model:fit(flow.ones { 2, 4 }, flow.zeros { 2, 1 }, { epochs = 1, verbose = 0 })
      near({ 0.98, 0.98, 0.98 }, model.layers[1].kernel:value()[1])      -- 1 - 2 rows of 0.01
    end
  end)

  it("leaves an argument without a gradient where the function gives none", function()
    local first = flow.custom_gradient(function(a, b) return a * b, function(upstream) return upstream * b end end)
    local a, b, tape = flow.ones { 2 }, flow.ones { 2 }, flow.GradientTape()
    tape:watch { a, b }
    local gradients = tape:gradient(tape:record(function() return first(a, b) end), { a, b })
    near({ 1, 1 }, gradients[1])
    assert.is_nil(gradients[2])
  end)

  it("names what is wrong with the function", function()
    local x = flow.ones { 2 }
    local message, own = support.message_of, flow.custom_gradient
    assert.truthy(message(function() own(function(a) return a end)(x) end):find("custom_gradient: f returns a tensor or a list of them, "
      .. "and a function that returns gradients, got a tensor float32 {2} cpu and nil", 1, true))
    local problem = message(function() own(function(a) return a, function() return a end end)(flow.Input { 2 }) end)
    local expected = "argument 1 is a symbolic tensor of a functional model: call it in a layer written in Lua"
    assert.truthy(problem:find(expected, 1, true), problem)
    assert.truthy(select(2, pcall(function()
      return gradient_of(own(function(a) return a * 1, function() return flow.ones { 3 } end end), x)
    end)):find("the gradient of argument 1 has shape {3}, the argument {2}", 1, true))
  end)
end)
