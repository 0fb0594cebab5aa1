-- layer_metrics_spec.lua: what layers written in Lua bring to a model: metrics in their fields, inputs that a call leaves out, and outputs
-- in lists of lists.
require "spec.support.init"
local flow = require "flow"

local layers = flow.layers

describe("layers written in Lua", function()
  it("have metrics that the model reports, as in Keras", function()
    local Endpoint = layers.Layer:extend "Endpoint"
    function Endpoint:init(options)
      layers.Layer.init(self, options)
      self.seen = flow.metrics.Mean("mean_of_targets")
      self.inner = layers.Dense(1)
    end
    function Endpoint:call(x, targets)
      local y = self.inner(x)
      if targets ~= nil then
        self:add_loss(y:mean())
        self.seen:update_state(targets)
      end
      return y
    end
    local x, targets = flow.Input({ 3 }, { name = "x" }), flow.Input({ 1 }, { name = "targets" })
    local model = flow.Model { inputs = { x, targets }, outputs = Endpoint()(x, targets) }
    model:compile { optimizer = "adam" }
    -- keras 3.15: the history has loss and mean_of_targets, which is 1.5 in both epochs
    local data = { flow.ones { 4, 3 }, flow.tensor { { 0 }, { 1 }, { 2 }, { 3 } } }
    local history = model:fit(data, { epochs = 2, verbose = 0 }).history
    assert.same({ 1.5, 1.5 }, history.mean_of_targets)
    assert.equal(1.5, model:evaluate(data, { verbose = 0, return_dict = true }).mean_of_targets)
    local inner = flow.Sequential { layers.Input { 3 }, layers.Dense(1) }
    inner:compile { loss = "mse", metrics = { "mae" } }
    local outer = flow.Sequential { layers.Input { 3 }, inner }
    outer:compile { loss = "mse" }
    assert.equal(1, #outer.metrics)      -- a model inside has no part in the training
  end)

  it("have the fields that their init sets to nil, as those that are None in Python", function()
    local Scaled = layers.Layer:extend "ScaledOrNot"
    function Scaled:init(factor) self.factor = factor end
    function Scaled:call(x) return self.factor and x * self.factor or x end
    assert.same({ 2, 2 }, Scaled(2)(flow.ones { 2 }):totable())
    local plain = Scaled()
    assert.is_nil(plain.factor)
    assert.same({ 1, 1 }, plain(flow.ones { 2 }):totable())
    plain.factor = 3
    assert.equal(3, plain.factor)
    assert.has_error(function() return plain.factors end)
  end)

  it("get nil for an input that a call leaves out", function()
    local Context = layers.Layer:extend "Context"
    function Context:call(x, context)
      if context == nil then return x end
      return x + context
    end
    local layer, x = Context(), flow.ones { 1, 2 }
    assert.same({ { 1, 1 } }, layer(x):totable())
    assert.same({ { 1, 1 } }, layer(x, { training = true }):totable())
    assert.same({ { 2, 2 } }, layer(x, x):totable())
    local input = flow.Input { 2 }
    assert.same({ { 1, 1 } }, flow.Model({ inputs = input, outputs = layer(input) })(x):totable())
  end)
end)

describe("Input", function()
  it("takes false for a size that is not known, and says so of nil", function()
    assert.equal("(None, None, None, 3)", tostring(flow.Input({ false, -1, 3 }).shape))
    local ok, problem = pcall(flow.Input, { nil, 3 })
    assert.is_false(ok)
    assert.truthy(problem:find("entry 1 is nil: -1, or false, stands for a size that is not known", 1, true))
  end)
end)

describe("models", function()
  it("give outputs in the lists in which they were given", function()
    local Pair = layers.Layer:extend "Pair"
    function Pair:call(x) return x, x * 2 end
    local input = flow.Input { 2 }
    local one, two = Pair { name = "one" }, Pair { name = "two" }
    local a = one(input)
    two(a)
    local model, x = flow.Model(input, { one.output, { two.output, a } }), flow.ones { 1, 2 }
    for _, found in ipairs { model(x), model:predict(x, { verbose = 0 }), model:predict_on_batch(x) } do
      assert.same({ { 2, 2 } }, found[1][2]:totable())
      assert.same({ { 1, 1 } }, found[2][1][1]:totable())
      assert.same({ { 1, 1 } }, found[2][2]:totable())
    end
  end)
end)
