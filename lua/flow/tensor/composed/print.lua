-- print.lua: flow.print(...): what tf.print does. Lua's print in a flow.fn runs once, when the function is traced, and tensors have no
-- values then; flow.print prints their values in every run.
--
-- A trace of flow.fn collects in scopes.own().prints what is to be printed: lists of values with their length n, whose tensors become
-- further results of the plan. A round of a loop gives no such results, so that a function with such a loop stays Lua. So does a function
-- of Dataset:map. The step of a compiled model runs without Lua unless it is compiled with run_eagerly = true.

local native = require "flow.ffi"
local errors = require "flow.errors"
local names = require "flow.names"
local scopes = require "flow.scopes"
local signature = require "flow.signature"
local log = require "flow.log"
local fn = require "flow.tensor.fn"

local C, context = native.C, native.context
local prints = signature.module "flow"
local takes = signature.takes

-- Of a tensor its values alone, as tf.print shows them.
local function text_of(value, is_inside)
  if native.is_tensor(value) then return (tostring(value):gsub("^Tensor [^\n]*\n", ""):gsub("%.$", "")) end
  if type(value) == "string" and is_inside then return ("%q"):format(value) end
  if type(value) ~= "table" or getmetatable(value) then return tostring(value) end
  local parts = {}
  for key, entry in names.ordered(value) do
    parts[#parts + 1] = (type(key) == "number" and "" or tostring(key) .. " = ") .. text_of(entry, true)
  end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

-- Prints a line.
local function show(values)
  local parts = {}
  for i = 1, values.n do parts[i] = text_of(values[i]) end
  log.print(table.concat(parts, " ") .. "\n")
end

signature.internal(prints).show = show

-- What stands for a tensor, as a variable does, as the tensor that it is now.
local function as_now(value, depth)
  local metatable = type(value) == "table" and getmetatable(value)
  if type(metatable) == "table" and metatable.__tensor then return metatable.__tensor(value) end
  if type(value) ~= "table" or metatable then return value end
  local result = {}
  depth = errors.deeper("flow.print", depth)
  for key, entry in names.ordered(value) do result[key] = as_now(entry, depth) end
  return result
end

-- Prints the values with a space between two of them, and the end of the line. In a traced function it does so in each run.
takes("values...", true)
function prints.print(...)
  local depth, mine = C.flow_trace_depth(context), scopes.own()
  if mine.scratch_trace then return end      -- only shapes are asked for
  local values = { n = select("#", ...), ... }
  for i = 1, values.n do values[i] = as_now(values[i]) end
  if depth == 0 then return show(values) end
  if mine.prints and depth == 1 then
    table.insert(mine.prints, values)
    return
  end
  mine.needs_values = true
  fn.check_untraced("flow.print: here is no Lua in each run that could print: the step of a model prints if it is compiled with "
    .. "run_eagerly = true")
end

return prints
