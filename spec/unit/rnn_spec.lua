-- rnn_spec.lua: RNN, its cells, and cells written in Lua: what golden cases do not say: files, training, unknown steps, masks, errors.
require "spec.support.init"
local flow = require "flow"
local model_files = require "spec.support.model_files"

local layers = flow.layers

local Minimal = layers.Layer:extend("Minimal")
function Minimal:init(options) self.units, self.state_size = options.units, options.units end
function Minimal:build(shape)
  self.inner = self:add_weight { name = "inner", shape = { shape[#shape], self.units } }
  self.recurrent = self:add_weight { name = "recurrent", shape = { self.units, self.units } }
end
function Minimal:call(x, states)
  local output = x:matmul(self.inner) + states[1]:matmul(self.recurrent)
  return output, { output }
end

local function near(a, b, tolerance)
  assert.same({ unpack(a.shape) }, { unpack(b.shape) })
  local distance = (a - b):abs():max():item()
  assert.is_true(distance <= (tolerance or 1e-6), distance)
end

local function problem(f, ...) return select(2, pcall(f, ...)) end
local function normal(shape, seed) return flow.random.normal(shape, { seed = seed }) end

describe("RNN", function()
  it("computes what the layer of its cell does, with the same weights", function()
    local x = normal({ 2, 5, 4 }, 1)
    for _, name in ipairs { "SimpleRNN", "LSTM", "GRU" } do
      local options = { return_sequences = true, return_state = true, go_backwards = true }
      local whole, rnn = layers[name](3, options), layers.RNN(layers[name .. "Cell"](3), options)
      local expected = whole(x)
      rnn:build { -1, 5, 4 }
      rnn:set_weights(whole:get_weights())
      for i, found in ipairs(rnn(x)) do near(found, expected[i]) end
    end
  end)

  it("drops the same of every step, other numbers in other runs", function()
    local rnn = layers.RNN(layers.SimpleRNNCell(32, { recurrent_dropout = 0.5, activation = "linear", kernel_initializer = "zeros",
      recurrent_initializer = "identity" }))
    local run = flow.fn(function(x, state) return rnn(x, { initial_state = { state }, training = true }) end)
    local x, ones = flow.zeros { 1, 3, 4 }, flow.ones { 1, 32 }
    rnn:build { -1, 3, 4 }
    local first, second = run(x, ones), run(x, ones)
    for _, value in ipairs(first:totable()[1]) do assert.is_true(value == 0 or math.abs(value - 8) < 1e-5, value) end
    assert.is_true((first - second):abs():max():item() > 0)
  end)

  it("runs cells written in Lua, alone and stacked, over any number of steps", function()
    local cell = Minimal { units = 3 }
    local rnn = layers.RNN(cell, { return_sequences = true, return_state = true })
    local x, h = normal({ 2, 4, 5 }, 2), flow.zeros { 2, 3 }
    local result = rnn(x)
    for t = 1, 4 do
      h = x[{ {}, { t, t } }]:squeeze(2):matmul(cell.inner) + h:matmul(cell.recurrent)
      near(result[1][{ {}, { t, t } }]:squeeze(2), h, 1e-5)
    end
    near(result[2], h, 1e-5)
    local steps = flow.Input { -1, 5 }
    local outputs = layers.RNN({ Minimal { units = 3 }, layers.LSTMCell(4) }, { return_sequences = true, return_state = true })(steps)
    assert.same({ { -1, -1, 4 }, { -1, 3 }, { -1, 4 }, { -1, 4 } },
      { outputs[1].shape, outputs[2].shape, outputs[3].shape, outputs[4].shape })
    local both = layers.Bidirectional(layers.RNN(Minimal { units = 2 }))
    local model = flow.Model { inputs = steps, outputs = layers.Dense(1)(both(outputs[1])) }
    model:compile { optimizer = flow.optimizers.Adam(0.02), loss = "mse" }
    local loss = model:fit(normal({ 8, 6, 5 }, 3), flow.ones { 8, 1 }, { epochs = 30, verbose = 0 }).history.loss
    assert.is_true(loss[30] < loss[1])
    model_files.assert_returns(model, { x }, { in_c = false, custom_objects = { Minimal = Minimal } })
    assert.equal(model:count_params(), flow.models.clone_model(model, { custom_objects = { Minimal = Minimal } }):count_params())
  end)

  it("takes cells that are not layers, states that they begin with, and rows of several axes", function()
    local Sum = setmetatable({ state_size = 2, get_initial_state = function(_, rows) return flow.ones { rows, 2 } end,
      call = function(_, x, states) return states[1] + x:sum(-1), states[1] + x:sum(-1) end }, {})
    local rnn = layers.RNN(Sum)
    near(rnn(flow.ones { 3, 4, 2, 5 }), flow.full({ 3, 2 }, 21))
    assert.matches("its cell is not a layer", problem(rnn.get_config, rnn))
  end)

  it("goes over what a mask leaves out, and hands it on", function()
    local rnn = layers.RNN(layers.GRUCell(3), { return_sequences = true })
    local ids = flow.tensor({ { 1, 2, 0, 0 }, { 3, 4, 1, 2 } }, { dtype = "int32" })
    local embedded = layers.Embedding(5, 4, { mask_zero = true })(ids)
    local y = rnn(embedded)
    near(y[{ 1, { 3, 3 } }], y[{ 1, { 2, 2 } }], 0)
    assert.same({ { true, true, false, false }, { true, true, true, true } }, y._keras_mask:totable())
  end)

  it("gives a stacked cell's sizes and steps", function()
    local stacked = layers.StackedRNNCells { layers.LSTMCell(3), Minimal { units = 2 } }
    assert.same({ { 3, 3 }, 2 }, stacked.state_size)
    assert.equal(2, stacked.output_size)
    local result = stacked(flow.ones { 1, 4 }, { flow.zeros { 1, 3 }, flow.zeros { 1, 3 }, flow.zeros { 1, 2 } })
    assert.equal(4, #result)
    assert.equal(2, result[1].shape[2])
  end)

  it("says what it does not take", function()
    assert.matches("RNN takes a cell such as layers.LSTMCell", problem(layers.RNN, layers.Dense(3)))
    assert.matches("takes a cell such as", problem(layers.RNN, 3))
    assert.matches("list of cells, which is empty", problem(layers.StackedRNNCells, {}))
    assert.matches("expected one step or more", problem(layers.RNN(layers.GRUCell(3)), flow.ones { 2, 3 }))
    local Bad = layers.Layer:extend("Bad")
    function Bad:init() self.state_size = 2 end
    function Bad:call(x, _) return x end
    assert.matches("returns the output and a list of 1 next states", problem(layers.RNN(Bad()), flow.ones { 2, 3, 4 }))
    assert.matches("input has 3 dimensions", problem(layers.LSTMCell(2), flow.ones { 1, 2, 3 }, { flow.ones { 1, 2 } }))
  end)
end)
