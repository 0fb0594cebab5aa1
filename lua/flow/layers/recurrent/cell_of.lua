-- cell_of.lua: lstm.cell: the step of a recurrent layer of the library as Keras shows it: its options, its weights, which are the layer's,
-- and cell(x, states), one step. Also the state with which the layer begins.

local errors = require "flow.errors"
local object = require "flow.object"
local tensor = require "flow.tensor"
local takes = require("flow.signature").takes

local STATES = { SimpleRNN = 1, LSTM = 2, GRU = 1, ConvLSTM1D = 2, ConvLSTM2D = 2, ConvLSTM3D = 2 }
local OF_SEQUENCES = { return_sequences = true, return_state = true, go_backwards = true, stateful = true, unroll = true,
                       activity_regularizer = true, use_cudnn = true, zero_output_for_mask = true }

local View = object.hide(object.class("Cell"))
function View.fields.layer(self) return self._layer end
function View.fields.state_size(self)
  local sizes = self._layer.state_size
  return #sizes == 1 and sizes[1] or sizes
end
for _, name in ipairs { "weights", "variables", "trainable_weights", "trainable_variables", "trainable", "built", "output_size" } do
  View.fields[name] = function(self) return self._layer[name] end
end
function View:get_weights() return self._layer:get_weights() end
function View:set_weights(values) self._layer:set_weights(values) end
function View:get_initial_state(batch_size) return self._layer:get_initial_state(batch_size) end

-- The options of the cell, which are those of the layer, but for what is of sequences.
function View:get_config()
  local config = {}
  for name, value in pairs(self._layer:get_config()) do
    if not OF_SEQUENCES[name] then config[name] = value end      -- false, too: use_bias = false
  end
  return config
end

function View:_missing(key)
  if OF_SEQUENCES[key] or not object.has(self._layer, key) and not self._layer:_missing(key) then return false end
  return true, self._layer[key]
end

-- One step: the output and the list of next states.
function View:_call(x, states, options)
  local layer = self._layer
  local class = require("flow.layers")[layer.class_name .. "Cell"]
  local cell = rawget(self, "_cell") or class.from_config(self:get_config())
  rawset(self, "_cell", cell)
  if not layer._built then
    local sizes = x.shape
    layer:build { sizes[1], -1, unpack(sizes, 2) }
  end
  if not cell._built then cell:build(x.shape) end
  for i, v in ipairs(layer.weights) do cell.weights[i]:assign(v) end      -- of now
  return cell(x, states, options)
end

-- class: a recurrent layer of the library.
return function(class)
  local count = STATES[class.name]
  local is_convolution = class.name:find "^Conv"

  function class.fields.cell(self)
    if is_convolution then
      errors.raise("%s has no cell of its own: its options and weights are fields of the layer, such as layer.kernel", object.title(self))
    end
    if not rawget(self, "_cell_view") then rawset(self, "_cell_view", object.new(View, { name = self.name .. "/cell", _layer = self })) end
    return self._cell_view
  end
  function class.fields.single_state() return count == 1 end
  function class.fields.output_size(self) return self.units end
  function class.fields.state_size(self)
    local size = is_convolution and self.filters or self.units
    return count == 1 and { size } or { size, size }
  end

  -- The state of the beginning for this number of rows: a list of zeros.
  takes "batch_size: count"
  function class:get_initial_state(batch_size)
    if is_convolution then errors.raise("%s: give initial_state as tensors; their size follows from the input's", object.title(self)) end
    local list = {}
    for i = 1, count do list[i] = tensor.zeros { batch_size, self.units } end
    return list
  end
end
