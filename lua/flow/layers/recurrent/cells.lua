-- cells.lua: one step of a recurrent layer, the library's or a script's: SimpleRNNCell, LSTMCell and GRUCell of the library,
-- StackedRNNCells, and cells written in Lua, which have
--
--   state_size                  a number, or a list of one for each state
--   cell:call(x, states, { training = })    x {n, features} and the list of states {n, size}: returns the output and the next states
--   cell.output_size, cell:get_initial_state(rows)      both optional; rows stands in shapes for the number of rows

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local ops = require "flow.tensor.ops"
local tensor = require "flow.tensor"
local several = require "flow.layers.several"
local Layer = require "flow.layers.layer"

local raise = errors.raise
local cells = { stacked = false }      -- stacked: the class of StackedRNNCells, when it is loaded

local function title(cell) return object.is(cell, Layer) and object.title(cell) or "the cell" end

-- A field of a cell, or nil. Cells may be tables of any kind.
local function field(cell, name)
  if not object.is(cell, Layer) then return cell[name] end
  if rawget(cell, "_assignments")[name] ~= nil then return cell[name] end
  return object.has(cell, name) and cell[name] or nil
end

-- Raises unless value can be a cell; returns it.
function cells.check(what, value)
  local ok = type(value) == "table" and (getmetatable(value) or value.call) and field(value, "state_size") ~= nil
  if not ok or type(field(value, "call")) ~= "function" and not getmetatable(field(value, "call")) then
    raise("%s takes a cell such as layers.LSTMCell(8), or one written in Lua with state_size and call(x, states), got %s", what,
      errors.describe(value))
  end
  return value
end

-- Raises unless a file can hold a cell of a layer.
function cells.check_saved(layer, cell)
  if object.is(cell, Layer) then return end
  raise("%s: its cell is not a layer, so that a file cannot hold it: make its class with layers.Layer:extend", object.title(layer))
end

-- The sizes of all states of a cell, one after the other.
function cells.sizes(cell)
  local list = {}
  local function add(size)
    if type(size) == "table" then
      for _, entry in ipairs(size) do add(entry) end
    elseif type(size) == "number" and size >= 1 and size % 1 == 0 then list[#list + 1] = size
    else raise("%s: state_size is a whole number or a list of them, got %s", title(cell), errors.describe(size)) end
  end
  add(field(cell, "state_size"))
  return list
end

-- Adds the tensors of a state to a list, depth first: a state is a tensor, or a list of states. Returns the list.
local function flat(value, list)
  if native.is_tensor(value) then list[#list + 1] = value
  elseif type(value) == "table" and not getmetatable(value) then
    for _, entry in ipairs(value) do flat(entry, list) end
  else list[#list + 1] = ops.operand(value, nil, "a state") end
  return list
end

-- Tensors of nested lists, one after the other.
function cells.flat(value) return flat(value, {}) end

-- The states that a cell begins with, for inputs like x.
function cells.begin(cell, x)
  if cells.stacked and object.is(cell, cells.stacked) then
    local list = {}
    for _, inner in ipairs(cell.cells) do flat(cells.begin(inner, x), list) end
    return list
  end
  local rows, own = tensor.raw_shape(x)[1], field(cell, "get_initial_state")
  if own and not rawget(cell, "_handle") then return cells.flat(own(cell, require("flow.tensor.shapes").of({ rows })[1])) end
  local list, dtype = {}, native.dtype(object.is(cell, Layer) and cell.compute_dtype or x.dtype)
  for i, size in ipairs(cells.sizes(cell)) do list[i] = ops.full_raw(x, { rows, size }, 0, dtype) end
  return list
end

-- One step: the output and the list of next states.
function cells.run(cell, x, states, training)
  if object.is(cell, Layer) then cell:_ensure_built({ tensor.raw_shape(x) }, true) end
  if rawget(cell, "_handle") and not rawget(cell, "_own_call") then
    local results = several.run(cell, { arguments = { x, states }, options = {} }, training)
    return results[1], { unpack(results, 2) }
  end
  if cells.stacked and object.is(cell, cells.stacked) then
    local after, first = {}, 1
    for _, inner in ipairs(cell.cells) do
      local count = #cells.sizes(inner)
      local own
      x, own = cells.run(inner, x, { unpack(states, first, first + count - 1) }, training)
      for _, state in ipairs(own) do after[#after + 1] = state end
      first = first + count
    end
    return x, after
  end
  local output, after = cell:call(x, states, { training = training })
  local list = after ~= nil and cells.flat(after) or {}
  if not native.is_tensor(output) or #list ~= #states then
    raise("%s: call(x, states) returns the output and a list of %d next states, got %s and %d", title(cell), #states,
      errors.describe(output), #list)
  end
  return output, list
end

return cells
