-- first_values_spec.lua: the first values of weights that layers make while a function is traced: they are drawn once, whoever makes them.
local flow = require "flow"

local layers = flow.layers
local function drawn(shape) return flow.random.normal(shape, { stddev = 0.1 }) end
local x = flow.ones { 4, 3 }

-- Layers that are built by their first call.
local InBuild = layers.Layer:extend "InBuild"
function InBuild:build(shape) self.w = flow.Variable(drawn { shape[-1], 2 }, { name = "w" }) end
function InBuild:call(inputs) return inputs:matmul(self.w) end
local ByFunction = layers.Layer:extend "ByFunction"
function ByFunction:build(shape) self.w = self:add_weight { shape = { shape[-1], 2 }, initializer = drawn } end
function ByFunction:call(inputs) return inputs:matmul(self.w) end
local MAKERS = {
  ["flow.Variable in build()"] = InBuild,
  ["add_weight with a function"] = ByFunction,
  ["a layer of the library with a function"] = function() return layers.Dense(2, { kernel_initializer = drawn }) end,
}

describe("first values of weights that a trace makes", function()
  for what, make in pairs(MAKERS) do
    it("are drawn once in a traced function: " .. what, function()
      local layer = make()
      local f = flow.fn(function(inputs) return layer(inputs) end)
      local first = f(x)
      local weights = layer:get_weights()
      assert.is_true((weights[1]:abs():sum()):item() > 0)
      assert.are.equal(0, (f(x) - first):abs():max():item())
      assert.are.equal(0, (layer:get_weights()[1] - weights[1]):abs():max():item())
    end)

    it("are those that fit of a model of one's own goes on from: " .. what, function()
      local Model = flow.Model:extend "Model"
      function Model:init() self.inner = make() end
      function Model:call(inputs) return self.inner(inputs) end
      local model = Model()
      model:compile { optimizer = flow.optimizers.SGD(0), loss = "mse" }
      model:fit(x, flow.zeros { 4, 2 }, { epochs = 2, verbose = 0 })
      local kernel = model:get_weights()[1]
      local spread = (kernel:square():mean() - kernel:mean():square()):sqrt():item()
      assert.is_true(spread > 0.01 and spread < 0.3, spread)
      model:fit(x, flow.zeros { 4, 2 }, { verbose = 0 })
      assert.are.equal(0, (model:get_weights()[1] - kernel):abs():max():item())
    end)
  end

  it("belong to the coroutine that makes them, and the trace goes on", function()
    local layer = InBuild()
    local seen
    local make = coroutine.wrap(function() seen = flow.random.normal({ 2 }):totable() end)
    local Other = layers.Layer:extend "Other"
    function Other:build(shape)
      make()
      layer:build(shape)
    end
    function Other:call(inputs) return layer(inputs) end
    local other = Other()
    local f = flow.fn(function(inputs) return other(inputs) + flow.random.uniform { 1, 2 } end)
    local first = f(x)
    assert.are.equal("number", type(seen[1]))
    assert.is_true((f(x) - first):abs():max():item() > 0)      -- what is not a weight is drawn in each run
  end)

  it("build() that fails leaves the trace unchanged", function()
    local fails = true
    local Failing = layers.Layer:extend "Failing"
    function Failing:build(shape)
      if fails then error("not yet", 0) end
      self.w = flow.Variable(drawn { shape[-1], 2 })
    end
    function Failing:call(inputs) return inputs:matmul(self.w) end
    local layer = Failing()
    local f = flow.fn(function(inputs)
      local ok, problem = pcall(layer, inputs)
      fails = false
      return (ok and 1 or 0) + layer(inputs) + (tostring(problem):find("not yet", 1, true) and 100 or 0)
    end)
    assert.is_true(f(x):min():item() > 90)
  end)

  it("build() takes a shape that counts from its end, whoever calls it", function()
    local layer = InBuild()
    layer:build { -1, 3 }
    assert.are.equal("{3, 2}", tostring(layer.w.shape))
  end)
end)
