-- subclassed_spec.lua: weights of subclassed models that Keras wrote (subclassed.py), of a graph for a subclassed model, and back.
local support = require "spec.support.init"
local flow = require "flow"
local tensor_file = require "flow.saving.tensor_file"
require "spec.support.precision"
local layers = flow.layers
local expected = require "spec.golden.subclassed"

local folder = support.root .. "spec/golden/keras/"
local temporary = support.file("subclassed.weights.h5", "")

local Mixer = layers.Layer:extend "Mixer"
function Mixer:init(units)
  self.norm = layers.LayerNormalization()
  self.dense = layers.Dense(units)
end
function Mixer:call(x) return x + self.dense(self.norm(x)) end

local Net = flow.Model:extend "Net"
function Net:init()
  self.stem = layers.Dense(4)
  self.blocks = { Mixer(4), Mixer(4) }
  self.mixers = { Mixer(4) }
  self.head = flow.Sequential { layers.Dense(3), layers.BatchNormalization() }
  self._private = layers.Dense(2)
end
function Net:call(x)
  x = self.stem(x)
  for _, list in ipairs { self.blocks, self.mixers } do
    for _, block in ipairs(list) do x = block(x) end
  end
  return self._private(self.head(x))
end

local Pair = flow.Model:extend "Pair"
function Pair:init()
  self.first = layers.Dense(4)
  self.second = layers.Dense(2)
end
function Pair:call(x) return self.second(self.first(x)) end

local function built(class)
  local model = class()
  model:build { -1, 3 }
  return model
end

local function assert_predicts(model, name)
  local difference = (model(flow.tensor(expected.x)) - flow.tensor(expected[name])):abs():max():item()
  assert.truthy(difference < 1e-5, ("%s: largest difference %g"):format(name, difference))
end

-- Names of the tensors in a file.
local function names_of(path)
  local file, names = tensor_file.open(path), {}
  for i = 1, file.count do names[i] = file:name_of(i) end
  file:close()
  table.sort(names)
  return names
end

describe("the weights of a subclassed model", function()
  it("are read from the places where Keras keeps them, and written there", function()
    local model = built(Net)
    model:load_weights(folder .. "subclassed_net.weights.h5")
    assert_predicts(model, "net")
    model:save_weights(temporary)
    assert.same(names_of(folder .. "subclassed_net.weights.h5"), names_of(temporary))
    local again = built(Net)
    again:load_weights(temporary)
    assert_predicts(again, "net")
  end)

  it("may be those of a graph with the same layers", function()
    local model = built(Pair)
    model:load_weights(folder .. "subclassed_graph.weights.h5")
    assert_predicts(model, "graph")
  end)

  it("that no place of the file has are missed at the first of them", function()
    local model = built(Net)
    local problem = support.message_of(function() model:load_weights(folder .. "subclassed_graph.weights.h5") end)
    assert.truthy(problem:find("expected 2 variables, but the file has 0", 1, true), problem)
  end)
end)
