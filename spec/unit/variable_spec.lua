-- variable_spec.lua: variables: value, assignment, fields, arithmetic by reading.
local support = require "spec.support.init"
local flow = require "flow"
local message_of = support.message_of

describe("flow.Variable", function()
  it("takes its value by Keras' and TensorFlow's names, or what makes it", function()
    local named = flow.Variable { initial_value = flow.ones { 2 }, trainable = false, name = "named" }
    assert.same({ 1, 1 }, named:value():totable())
    assert.is_false(named.trainable)
    local ones = flow.initializers.Ones()
    assert.same({ { 1, 1 } }, flow.Variable(ones, { shape = { 1, 2 } }):value():totable())
    assert.same({ 1 }, flow.Variable { initializer = ones, shape = { 1 } }:value():totable())
    assert.same({ 5 }, flow.Variable(function() return flow.tensor { 5 } end):value():totable())
    local ok, message = pcall(flow.Variable, "zeros")
    assert.is_false(ok)
    assert.truthy(message:find('flow.initializers.get("zeros")', 1, true))
  end)
end)

describe("flow.Variable", function()
  it("has Keras' name and path", function()
    local dense, sgd = flow.layers.Dense(2, { name = "d" }), flow.optimizers.SGD { momentum = 0.5 }
    dense:build { 1, 3 }
    local kernel = dense.kernel
    assert.same({ "kernel", "d/kernel" }, { kernel.name, kernel.path })
    sgd:build { flow.Variable(1, { name = "w" }) }
    assert.same({ "w_momentum", "sgd/w_momentum" }, { sgd.variables[3].name, sgd.variables[3].path })
    assert.truthy(tostring(kernel):find('Variable "d/kernel" float32 {3, 2}', 1, true))
  end)

  it("has a path with the names of all layers around it, as in Keras", function()
    local function paths(list)
      local found = {}
      for i, v in ipairs(list) do found[i] = v.path end
      return table.concat(found, " ")
    end
    local layers, input = flow.layers, flow.Input { 5, 2 }
    local inner = flow.Sequential({ layers.Input { 5, 2 }, layers.Bidirectional(layers.LSTM(3, { use_bias = false, name = "l" })),
      layers.Dense(3, { name = "d" }) }, { name = "inner" })
    local graph = flow.Model { inputs = input, outputs = inner(layers.BatchNormalization { name = "bn", scale = false } (input)) }
    assert.equal("bn/beta bn/moving_mean bn/moving_variance inner/bidirectional/forward_l/lstm_cell/kernel "
      .. "inner/bidirectional/forward_l/lstm_cell/recurrent_kernel inner/bidirectional/backward_l/lstm_cell/kernel "
      .. "inner/bidirectional/backward_l/lstm_cell/recurrent_kernel inner/d/kernel inner/d/bias",
      (paths(graph.weights):gsub("bidirectional_?%d*", "bidirectional")))
    local Block = layers.Layer:extend "Block"
    function Block:build(shape)
      self.dense = layers.Dense(2, { name = "dense" })
      self.dense:build(shape)
      self.gain = self:add_weight { name = "gain", shape = { 2 } }
    end
    function Block:call(x) return self.dense(x) * self.gain end
    local Mine = flow.Model:extend "Mine"
    function Mine:init()
      self.block = Block { name = "block" }
      self.last = flow.Sequential({ layers.Dense(2, { name = "dense" }) }, { name = "last" })
      self.w = self:add_weight { shape = { 2 }, name = "w" }
    end
    function Mine:call(x) return self.last(self.block(x)) + self.w end
    local expected = "mine/w mine/block/gain mine/block/dense/kernel mine/block/dense/bias mine/last/dense/kernel mine/last/dense/bias"
    for _, call in ipairs { function(model) model(flow.ones { 1, 2 }) end, function(model) model(flow.Input { 2 }) end,
                            function(model) model:build { -1, 2 } end } do
      local mine = Mine { name = "mine" }
      call(mine)
      collectgarbage()
      assert.equal(expected, paths(mine.weights))
      assert.equal("mine/last/dense/bias", mine.last.layers[1].bias.path)
    end
    local Failing = layers.Layer:extend "Failing"
    function Failing:call() error "no" end
    assert.is_false(pcall(Failing(), flow.ones { 1, 2 }))      -- an error leaves no name open
    local alone = layers.Dense(1, { name = "alone" })
    alone:build { -1, 2 }
    assert.equal("alone/kernel", alone.kernel.path)
  end)

  it("has a name, a dtype, a shape and a trainable flag", function()
    local v = flow.Variable({ { 1, 2 } }, { name = "w" })
    assert.equal("w", v.name)
    assert.equal("float32", v.dtype)
    assert.same({ 1, 2 }, v.shape)
    assert.is_true(v.trainable)
    assert.equal(2, v.rank)
    v.trainable = false
    assert.is_false(v.trainable)
    assert.is_false(flow.Variable(0, { trainable = false }).trainable)
    assert.equal("int64", flow.Variable(0, { dtype = "int64" }).dtype)
    assert.equal('Variable "w" float32 {1, 2} cpu\n[[1. 2.]]', tostring(v))
  end)

  it("copies its initial value, and value() copies it again", function()
    local start = flow.tensor { 1, 2 }
    local v = flow.Variable(start)
    start[1] = 9
    local value = v:value()
    v:assign { 5, 6 }
    assert.same({ 1, 2 }, value:totable())
    assert.same({ 5, 6 }, v:totable())
  end)

  it("is assigned, added to and subtracted from", function()
    local v = flow.Variable { 1, 2 }
    assert.same({ 2, 4 }, v:assign_add({ 1, 2 }):totable())
    assert.same({ 1, 3 }, v:assign_sub(1):totable())
    v:assign(7)
    assert.same({ 7, 7 }, v:totable())
    v:assign(flow.Variable { 1, 0 })
    assert.same({ 1, 0 }, v:totable())
    local count = flow.Variable(0, { dtype = "int64" })
    count:assign_add(1)
    assert.equal(1, count:item())
  end)

  it("adds a value of another dtype first and converts the sum, eagerly and in traces", function()
    local dtypes = { "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool" }
    for _, dtype in ipairs(dtypes) do
      for _, other in ipairs(dtypes) do
        local start = flow.tensor({ 5, 7, 100, 1 }, { dtype = dtype })
        local eager, traced = flow.Variable(start), flow.Variable(start)
        local x = flow.tensor({ -1.7, 2.6, 0.3, -9 }):to(other)
        eager:assign_add(x)
        flow.fn(function(value)
          traced:assign_add(value)
          return value
        end)(x)
        assert.same(eager:totable(), traced:totable(), dtype .. " + " .. other)
      end
    end
    local count = flow.Variable(flow.tensor({ 5, 16777217 }, { dtype = "int64" }))
    assert.same({ 3, 16777218 }, count:assign_add({ -1.7, 1 }):totable())
  end)

  it("reads in arithmetic and tensor methods", function()
    local v = flow.Variable { 1, 4 }
    assert.same({ 2, 8 }, (v * 2):totable())
    assert.same({ 0, -3 }, (1 - v):totable())
    assert.same({ 1, 2 }, v:sqrt():totable())
    assert.same({ 2, 8 }, (v + v):totable())
    assert.same({ -1, -4 }, (-v):totable())
    assert.equal(5, v:sum():item())
    assert.equal(4, v[2]:item())
    assert.same({ 2, 5 }, (flow.ones { 2 } + v):totable())
    assert.same({ 1, 4 }, flow.maximum(v, 0):totable())
  end)

  it("is equal to itself only", function()
    local v = flow.Variable(1)
    local variable = require "flow.tensor.variable"
    assert.is_true(variable.wrap(v.handle) == v)
    assert.is_false(flow.Variable(1) == v)
  end)

  it("says what it refuses, at the caller's line", function()
    local v = flow.Variable({ 1, 2 }, { name = "w" })
    assert.equal('assign to variable "w": value has shape {3}, the variable {2}', message_of(function() v:assign { 1, 2, 3 } end))
    assert.equal("a variable's elements cannot be assigned one by one; change its value with :assign(x)",
      message_of(function() v[1] = 0 end))
    assert.equal('a variable has no field "asign"; did you mean "assign"?', message_of(function() return v.asign end))
    assert.equal("flow.Variable needs an initial value", message_of(function() flow.Variable() end))
    assert.equal('flow.Variable: unknown option "nam"; did you mean "name"?',
      message_of(function() flow.Variable(1, { nam = "x" }) end))
  end)
end)
