-- wrapper_spec.lua: layers.Wrapper: classes of scripts that extend it hold a layer, build it, and come back from files with it.
local support = require "spec.support.init"
local flow = require "flow"
local layers, message_of = flow.layers, support.message_of

local Twice = layers.Wrapper:extend "Twice"
function Twice:call(x) return self.layer(x) * 2 end

local Scaled = layers.Wrapper:extend "Scaled"
function Scaled:init(layer, factor, options)
  layers.Wrapper.init(self, layer, options)
  self.factor = factor
end
function Scaled:call(x) return self.layer(x) * self.factor end
function Scaled:get_config()
  local config = layers.Wrapper.get_config(self)
  config.factor = self.factor
  return config
end

local x = flow.reshape(flow.arange(8, { dtype = "float32" }), { 2, 4 })
local function same(a, b) assert.same(a:totable(), b:totable()) end

describe("layers.Wrapper", function()
  it("holds a layer, builds it and calls it", function()
    local dense = layers.Dense(3)
    local wrapped = Twice(dense)
    assert.equal(dense, wrapped.layer)
    assert.is_false(dense.built)
    wrapped:build { -1, 4 }
    assert.is_true(dense.built)
    assert.equal(2, #wrapped.trainable_weights)
    same(dense(x) * 2, wrapped(x))
  end)

  it("is saved with its layer, and its classes' arguments", function()
    local input = flow.Input { 4 }
    local model = flow.Model(input, Scaled(Twice(layers.Dense(3), { name = "inner" }), 3, { name = "outer" })(input))
    model:compile { loss = "mse" }
    model:fit(x, flow.ones { 2, 3 }, { verbose = 0 })
    local path = support.path ".keras"
    model:save(path)
    local custom = { Twice = Twice, Scaled = Scaled }
    local again = flow.load_model(path, { custom_objects = custom })
    same(model(x), again(x))
    assert.equal("inner", again:get_layer("outer").layer.name)
    assert.equal(3, again:get_layer("outer").factor)
    assert.matches("layers that flowlua does not know: ", message_of(function() flow.load_model(path) end), 1, true)
    local copy = flow.models.clone_model(model)
    copy:set_weights(model:get_weights())
    same(model(x), copy(x))
    local steps = flow.Sequential { flow.Input { 2, 4 }, layers.TimeDistributed(Twice(layers.Dense(3))) }
    assert.equal(15, flow.models.clone_model(steps):count_params())
  end)

  it("comes back from its config, and so do classes that extend other wrappers", function()
    local config = Twice(layers.Dense(3, { name = "d" })):get_config()
    assert.equal("Dense", config.layer.class_name)
    assert.equal("d", Twice.from_config(config).layer.name)
    assert.equal("d", layers.Wrapper.from_config(config).layer.name)
    local Steps = layers.TimeDistributed:extend "Steps"
    assert.equal(3, Steps.from_config(Steps(layers.Dense(3)):get_config())(flow.ones { 1, 2, 4 }).shape[3])
  end)

  it("says what it takes, and that a class has a call of its own", function()
    assert.matches("Wrapper takes a layer such as layers.Dense(8), got the number 3", message_of(function() Twice(3) end), 1, true)
    assert.matches("call(x) of its own", message_of(function() layers.Wrapper(layers.Dense(2))(x) end), 1, true)
  end)
end)
