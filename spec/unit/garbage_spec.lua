-- Tensors that a loop makes and lets go are released while it runs, whatever makes them: their memory is not Lua's, whose collector would
-- come only after thousands of them.
require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local layers = flow.layers

local ROWS, COLUMNS, TURNS = 256, 1024, 200
local MOST = 100e6                      -- bytes of garbage: half of what the turns make

local x = flow.random.uniform({ ROWS, COLUMNS }, { seed = 1 })
local input, other = flow.Input { COLUMNS }, flow.Input { COLUMNS }
local one = flow.Model { inputs = input, outputs = layers.ReLU()(input) }
local two = flow.Model { inputs = { input, other }, outputs = layers.Add() { input, other } }
local both = flow.Model { inputs = input, outputs = { layers.ReLU()(input), layers.Softmax()(input) } }
local named = flow.Model { inputs = { a = input, b = other }, outputs = { sum = layers.Add() { input, other } } }
local Own = flow.Model:extend "Own"
function Own:call(rows) return flow.relu(rows) * 2 end
local own, layer = Own(), layers.ELU()
local data = flow.data.Dataset.from_tensor_slices(x):batch(ROWS)
local weights = flow.Variable(x)

local MAKERS = {
  ["a model's call"] = function() return one(x) end,
  ["a call of two inputs"] = function() return two { x, x } end,
  ["a call by names"] = function() return named { a = x, b = x } end,
  ["a call of a model in Lua"] = function() return own(x) end,
  ["a layer's call"] = function() return layer(x) end,
  ["predict"] = function() return one:predict(x, { verbose = 0 }) end,
  ["predict with a Dataset"] = function() return one:predict(data, { verbose = 0 }) end,
  ["predict_on_batch"] = function() return one:predict_on_batch(x) end,
  ["predict_on_batch of two inputs"] = function() return two:predict_on_batch { x, x } end,
  ["predict_on_batch of two outputs"] = function() return both:predict_on_batch(x) end,
  ["predict_on_batch by names"] = function() return named:predict_on_batch { a = x, b = x } end,
  ["a traced function"] = flow.fn(function() return flow.relu(x) end),
  ["ops"] = function()
    return x + 1, flow.matmul(x, x, { transpose_b = true }), flow.softmax(x), flow.cumsum(x, 1), flow.where(x:gt(0.5), x, 0)
  end,
  ["random numbers"] = function() return flow.random.normal { ROWS, COLUMNS } end,
  ["a gradient"] = function()
    local tape = flow.GradientTape()
    tape:watch(x)
    local y = tape:record(function() return flow.sum(flow.square(x)) end)
    return tape:gradient(y, x)
  end,
  ["a variable's value"] = function() return weights:value() + 0 end,
  ["batches"] = function() for batch in data:iter() do x = batch end end,
  ["a table"] = (function()
    local row = {}
    for i = 1, ROWS * COLUMNS / 16 do row[i] = i end
    return function() for _ = 1, 16 do flow.tensor(row) end end
  end)(),
  ["resized pictures"] = function() return flow.image.resize(flow.zeros { 64, 64, 64 }, { 64, 64 }) end,
}

describe("garbage of tensors is collected in a loop of", function()
  for name, make in pairs(MAKERS) do
    it(name, function()
      collectgarbage()
      collectgarbage()
      local before, most = native.C.flow_live_bytes(), 0
      for _ = 1, TURNS do
        make()
        most = math.max(most, native.C.flow_live_bytes() - before)
      end
      assert.is_true(most < MOST, ("%.0f bytes were alive"):format(most))
    end)
  end
end)
