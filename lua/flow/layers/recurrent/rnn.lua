-- rnn.lua: RNN: a cell over the steps of a sequence, and StackedRNNCells: several cells as one. Names, defaults, results and files are
-- Keras' (keras.src.layers.rnn). In a plan the steps are a loop, but with unroll; states of several cells are one list.

local errors = require "flow.errors"
local native = require "flow.ffi"
local object = require "flow.object"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local loops = require "flow.tensor.loops"
local ops = require "flow.tensor.ops"
local Layer = require "flow.layers.layer"
local cells = require "flow.layers.recurrent.cells"
local entries = require "flow.layers.entries"
local own_build = require "flow.layers.classes.build"
local recurrent_calls = require "flow.layers.recurrent.calls"
local symbolic = require "flow.layers.symbolic"

local variable = require "flow.tensor.variable"

local C, raise = native.C, errors.raise

local RNN, StackedRNNCells = object.class("RNN", Layer), object.class("StackedRNNCells", Layer)
cells.stacked = StackedRNNCells

---- StackedRNNCells ----------------------------------------------------------------------------------------------------------------

signature.takes("cells: list, { name?: string, trainable: boolean = true, dtype? }")
signature.constructor(StackedRNNCells, "flow.layers.StackedRNNCells", function(list, options)
  if errors.check_list("StackedRNNCells", list) == 0 then raise("StackedRNNCells takes a list of cells, which is empty") end
  local self = object.new(StackedRNNCells):_prepare("StackedRNNCells", options)
  for i, cell in ipairs(list) do
    cells.check("StackedRNNCells", cell)
    if object.is(cell, Layer) then self._children[#self._children + 1] = cell end
    cells.sizes(list[i])
  end
  rawset(self, "_assignments", { cells = list })
  return self
end)

function StackedRNNCells.fields._autocasts() return false end
function StackedRNNCells.fields.state_size(self)
  local sizes = {}
  for i, cell in ipairs(self.cells) do
    local own = cells.sizes(cell)
    sizes[i] = #own == 1 and own[1] or own
  end
  return sizes
end
function StackedRNNCells.fields.output_size(self)
  local last = self.cells[#self.cells]
  return object.has(last, "output_size") and last.output_size or cells.sizes(last)[1]
end

-- inputs and the states of all cells, one list: returns the output of the last cell, then the next states, in one list.
function StackedRNNCells:call(x, states, options)
  local output, after = cells.run(self, x, cells.flat(states), options and options.training)
  return { output, unpack(after) }
end

function StackedRNNCells:get_config()
  local config = entries.base(self)
  config.cells = {}
  for i, cell in ipairs(self.cells) do
    cells.check_saved(self, cell)
    config.cells[i] = entries.inner(cell)
  end
  return config
end

function StackedRNNCells._from_config(class, content, reader)
  local options = entries.options(content)
  options.dtype, options.cells = entries.dtype(content), {}
  for i, entry in ipairs(entries.table_field(content, "cells", reader.path)) do
    options.cells[i] = entries.read_inner(entry, reader, "a cell of StackedRNNCells")
  end
  return class(options)
end

---- RNN ------------------------------------------------------------------------------------------------------------------------------

local OPTIONS = { "return_sequences", "return_state", "go_backwards", "stateful", "unroll", "zero_output_for_mask" }

signature.takes("cell, return_sequences: boolean = false, return_state: boolean = false, go_backwards: boolean = false, "
  .. "stateful: boolean = false, unroll: boolean = false, zero_output_for_mask: boolean = false, "
  .. "{ name?: string, trainable: boolean = true, dtype? }")
signature.constructor(RNN, "flow.layers.RNN", function(cell, return_sequences, return_state, go_backwards, stateful, unroll,
    zero_output_for_mask, options)
  if type(cell) == "table" and not getmetatable(cell) and #cell > 0 then cell = #cell > 1 and StackedRNNCells(cell) or cell[1] end
  cells.check("RNN", cell)
  local self = object.new(RNN):_prepare("RNN", options)
  local given = { return_sequences, return_state, go_backwards, stateful, unroll, zero_output_for_mask }
  for i, name in ipairs(OPTIONS) do rawset(self, name, given[i]) end
  rawset(self, "_assignments", { cell = cell })
  if object.is(cell, Layer) then self._children[1] = cell end
  rawset(self, "_named_inputs", recurrent_calls.inputs(#cells.sizes(cell)))
  return self
end)

require "flow.layers.recurrent.reset" (RNN)

function RNN.fields._autocasts(self) return not rawget(self.cell, "_handle") and object.class_of(self.cell) ~= StackedRNNCells end
function RNN.fields.state_size(self) return cells.sizes(self.cell) end
function RNN.fields.single_state(self) return #self.state_size == 1 end
-- The states of the beginning for this number of rows, one after the other.
signature.takes "batch_size: count"
function RNN:get_initial_state(batch_size) return cells.begin(self.cell, tensor.zeros { batch_size, 1 }) end
signature.takes "batch_size: count"
function StackedRNNCells:get_initial_state(batch_size) return cells.begin(self, tensor.zeros { batch_size, 1 }) end

-- a where the mask {n} holds, else b.
local function choose(mask, a, b)
  local dims, rank = { tensor.raw_shape(mask)[1] }, #tensor.raw_shape(a)
  for axis = 2, rank do dims[axis] = 1 end
  return ops.where(ops.reshape_raw(mask, dims), a, b)
end

-- One step. own: its part of the mask, or nil; before: the output of the step before, nil: there was none, or it does not count.
local function one_step(self, x, own, states, before, training)
  local output, after = cells.run(self.cell, x, states, training)
  if not own then return output, after end
  for i, state in ipairs(after) do after[i] = choose(own, state, states[i]) end
  return choose(own, output, before or ops.zeros_like(output)), after
end

-- Steps first .. last of {n, steps, ...} as {steps, n, ...}.
local function by_steps(x, first, last)
  x = ops.swapaxes(x, 1, 2)
  return first == 1 and last == tensor.raw_shape(x)[1] and x or x[{ { first, last } }]
end

-- Whether states keep their dtypes and shapes from one step to the next, as a loop needs.
local function alike(before, after)
  for i, state in ipairs(before) do
    local same = state.dtype == after[i].dtype and
      symbolic.shape_text(tensor.raw_shape(state)) == symbolic.shape_text(tensor.raw_shape(after[i]))
    if not same then return false end
  end
  return true
end

-- The steps as a loop of a plan: the outputs {steps, n, ...} in the order in which they are made, and the last states; nil where there is
-- none. With a mask that repeats outputs the first step is before it: what it gives is the first output that can be repeated.
local function looped(self, x, states, mask, training)
  local steps, repeats = tensor.raw_shape(x)[2], mask and not self.zero_output_for_mask
  if self.unroll or C.flow_trace_depth(native.context) == 0 or steps < (repeats and 3 or 2) then return nil end
  local first, last, begun, count = 1, steps, nil, #states
  if repeats then
    local t = self.go_backwards and steps or 1
    begun, states = one_step(self, recurrent_calls.step(x, t), recurrent_calls.step(mask, t), states, nil, training)
    first, last = self.go_backwards and 1 or 2, self.go_backwards and steps - 1 or steps
    states = { unpack(states) }
    states[count + 1] = begun
  end
  local after, outputs = loops.run(states, { by_steps(x, first, last), mask and by_steps(mask, first, last) or nil }, last - first + 1,
    self.go_backwards, function(own, rows)
      local output, following = one_step(self, rows[1], rows[2], { unpack(own, 1, count) }, own[count + 1], training)
      if repeats then following[count + 1] = output end
      if alike(own, following) then return following, { output } end
      loops.write_out()
      return own, {}
    end)
  if not after then return nil end
  outputs = self.go_backwards and ops.flip(outputs[1], 1) or outputs[1]
  return begun and ops.concat({ ops.expand_dims(begun, 1), outputs }, 1) or outputs, { unpack(after, 1, count) }
end

-- The output of the last step, or of all {n, steps, ...} in the order in which they are made, and the last states.
local function run_steps(self, x, states, mask, training)
  local found, last_states = looped(self, x, states, mask, training)
  if found then
    local steps = tensor.raw_shape(found)[1]
    return self.return_sequences and by_steps(found, 1, tensor.raw_shape(found)[2]) or found[steps], last_states
  end
  local steps, outputs, before = tensor.raw_shape(x)[2], {}, nil
  for k = 1, steps do
    local t = self.go_backwards and steps + 1 - k or k
    outputs[k], states = one_step(self, recurrent_calls.step(x, t), mask and recurrent_calls.step(mask, t), states, before, training)
    before = not self.zero_output_for_mask and outputs[k] or nil
  end
  return self.return_sequences and ops.stack(outputs, 2) or outputs[steps], states
end

-- What a stateful layer begins with: the last states of its call before; zeros in the first one, which makes the variables.
local function kept_states(self, x)
  local rows, kept = tensor.raw_shape(x)[1], rawget(self, "_kept_states")
  if rows < 0 then
    raise("%s: stateful = true keeps a state for each row of a batch, and the number of rows is not known here: give the model's input " ..
      "a batch size, as in Input({ 10, 8 }, { batch_size = 32 }) for batches of {32, 10, 8}", object.title(self))
  end
  if kept and kept[1].shape[1] ~= rows then
    raise("%s: stateful = true: the batch has %d rows, the states are those of %d: give batches of %d rows; of a Dataset leave out the " ..
      "rest by batch(%d, { drop_remainder = true })", object.title(self), rows, kept[1].shape[1], kept[1].shape[1], kept[1].shape[1])
  end
  if not kept then
    kept = {}
    for i, state in ipairs(cells.begin(self.cell, x)) do
      kept[i] = variable.Variable(tensor.zeros(tensor.raw_shape(state)), { name = self.name .. "/rnn_state", trainable = false })
    end
    rawset(self, "_kept_states", kept)
  end
  local list = {}
  for i, v in ipairs(kept) do list[i] = variable.read(v) end
  return list
end

-- The states before the first step, a flat list in the cell's dtype: those given, else those kept from the batch before (stateful), else
-- the cell's own beginning.
local function initial_states(self, x, given)
  local kept = self.stateful and kept_states(self, x)
  local list = given and cells.flat(given) or kept or cells.begin(self.cell, x)
  local sizes = cells.sizes(self.cell)
  if #list ~= #sizes then
    raise("%s: initial_state holds %d tensors, its cell has %d states", object.title(self), #list, #sizes)
  end
  local dtype = object.is(self.cell, Layer) and self.cell.compute_dtype or x.dtype
  for i, state in ipairs(list) do list[i] = state:to(dtype) end
  return list
end

-- sequences, { initial_state = list, mask =, training = }: the last output, or all of them, then, with return_state, the states.
function RNN:call(...)
  local x, given, mask, training = recurrent_calls.read(...)
  local dims = tensor.raw_shape(x)
  if #dims < 3 or dims[2] < 1 then
    raise("%s: input has shape %s, expected one step or more {batch, steps, ...}", object.title(self), symbolic.shape_text(dims))
  end
  if mask then mask = mask:to "bool" end
  local y, states = run_steps(self, x, initial_states(self, x, given), mask, training)
  for i, v in ipairs(self.stateful and rawget(self, "_kept_states") or {}) do v:assign(states[i]) end
  local dtype = self._policy.compute_dtype
  y = y:to(dtype)
  if not self.return_state then return y end
  local results = { y }
  for i, state in ipairs(states) do results[1 + i] = state:to(dtype) end
  return results
end

-- Shapes of the outputs, as one step says: see symbolic.infer.
function RNN:_infer(list, _, training)
  local shape = list[1].shape
  if #shape < 3 then
    raise("%s: input has shape %s, expected {batch, steps, ...}", object.title(self), symbolic.shape_text(shape))
  end
  local found = symbolic.infer(self, { { shape = { shape[1], 1, unpack(shape, 3) }, dtype = list[1].dtype } }, true, training)
  if self.return_sequences then found[1].shape[2] = shape[2] end
  return found
end

-- Makes the cell's variables.
RNN.build = own_build.once(function(self, shape)
  symbolic.infer(self, { { shape = { self.stateful and shape[1] or -1, 1, unpack(shape, 3) }, dtype = "float32" } }, true, false)
end)

function RNN:compute_mask(_, mask)
  if type(mask) == "table" and not getmetatable(mask) then mask = mask[1] end
  return self.return_sequences and mask or nil
end

function RNN:get_config()
  local config = entries.base(self)
  for _, name in ipairs(OPTIONS) do config[name] = self[name] end
  cells.check_saved(self, self.cell)
  config.cell = entries.inner(self.cell)
  return config
end

function RNN._from_config(class, content, reader) return class(entries.options_with_layer(content, reader, "cell", "RNN")) end

return { RNN = RNN, StackedRNNCells = StackedRNNCells }
