-- clipping.lua: clipping gradients in a script's training loop: clip_by_norm, clip_by_global_norm and global_norm, as TensorFlow has them.

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"

local ops, raise = tools.ops, errors.raise
local takes = signature.takes

local ZERO = 1e-37      -- a norm below is that of zeros, which stay

-- Scales x to the norm clip_norm if its norm over the axes (nil: all) is larger. The square root has no finite slope at 0, so a sum of 0 is
-- replaced before it, as in TensorFlow; the gradient there is that of x itself.
takes "x, clip_norm, axes?: number|list"
tools.define_long(function(x, clip_norm, axes)
  x = tools.floats(x, "clip_by_norm")
  clip_norm = tools.operand(clip_norm, "clip_by_norm", x.dtype)
  local sum = ops.sum(ops.square(x), axes, true)
  local is_zero = ops.eq(sum, 0)
  local norm = ops.where(is_zero, 0, ops.sqrt(ops.where(is_zero, 1, sum)))
  return x * clip_norm / ops.maximum(norm, ops.maximum(clip_norm, ZERO))
end, "clip_by_norm")

-- The places of the tensors in a list that may hold nil and false, and its length.
local function places(what, list)
  if type(list) ~= "table" or getmetatable(list) then raise("flow.%s takes a list of tensors, got %s", what, errors.describe(list)) end
  local found, last = {}, table.maxn(list)
  for i = 1, last do
    if list[i] then found[#found + 1] = i end
  end
  return found, last
end

-- The square root of the sum of all squares; found: the positions of a list that have a tensor. 0 where none has.
local function norm_of(what, list, found)
  local total
  for _, i in ipairs(found) do
    local x = tools.floats(native.is_variable(list[i]) and list[i]:value() or list[i], what)
    local sum = ops.sum(ops.square(x))
    total = total and total + sum or sum
  end
  return total and ops.sqrt(total) or tools.operand(0, what)
end

-- The root of the sum of the squares of all tensors.
tools.create("global_norm", "t_list: gaps", function(list) return norm_of("global_norm", list, (places("global_norm", list))) end)

-- The sum of all tensors of a list, which have one shape and dtype.
tools.create("add_n", "inputs: given, name?: string", function(list)
  if native.is_tensor(list) or native.is_variable(list) then list = { list } end
  if type(list) ~= "table" or getmetatable(list) then raise("flow.add_n takes a list of tensors, got %s", errors.describe(list)) end
  local count, total, first = errors.check_list("flow.add_n", list), nil, nil
  if count == 0 then raise("flow.add_n: the list is empty") end
  for i = 1, count do
    local of_entry = type(list[i]) == "table" and getmetatable(list[i])
    local is_symbolic = of_entry and of_entry.__apply
    local x = is_symbolic and list[i] or tools.operand(list[i], "add_n")
    local shape = tensor.shape_text(is_symbolic and x.shape or tools.dims(x))
    first = first or { shape = shape, dtype = x.dtype }
    if x.dtype ~= first.dtype or shape ~= first.shape then
      raise("flow.add_n: all tensors have one shape and dtype; the first one is %s %s, number %d is %s %s", first.dtype, first.shape, i,
        x.dtype, shape)
    end
    total = total and total + x or x
  end
  return total
end)

-- The tensors, scaled by one factor to the norm clip_norm of all of them where it is larger, and the norm that they had. Entries that are
-- nil or false, gradients of what is not connected, stay.
tools.create("clip_by_global_norm", "t_list: gaps, clip_norm: any, use_norm?: any", function(list, clip_norm, use_norm)
  local found = places("clip_by_global_norm", list)
  local norm = use_norm ~= nil and tools.operand(use_norm, "clip_by_global_norm") or norm_of("clip_by_global_norm", list, found)
  local bound = tools.operand(clip_norm, "clip_by_global_norm")
  local factor, clipped = bound / ops.maximum(norm, ops.maximum(bound, ZERO)) + norm * 0, {}      -- NaN, if the norm is infinite
  for i, x in pairs(list) do clipped[i] = x and x * factor:to(x.dtype) end
  return clipped, norm
end)
