-- shape_ops.lua: reshape, transpose, slices, concat and their kin: ops that move elements and compute nothing. Used by ops.lua.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local takes = require("flow.signature").takes

local C, raise = native.C, errors.raise
local methods, floor = native.methods, math.floor

-- from: the functions of ops.lua that these are made with.
return function(from)
  local ops, define, define_variadic, ids = from.ops, from.define, from.define_variadic, from.ids
  local axis_from, rank_of, apply1, apply_list = from.axis_from, from.rank_of, from.apply1, from.apply_list
  local operand = ops.operand

  local function with_dims(op, x, dims)
    if #dims > C.FLOW_MAX_RANK then raise("a tensor has at most %d dimensions, got %d", C.FLOW_MAX_RANK, #dims) end
    local attributes = native.attributes()
    attributes.shape.rank = #dims
    for i = 1, #dims do attributes.shape.dims[i - 1] = dims[i] end
    return apply1(op, x, attributes)
  end

  -- Dimensions as the library counts them: negative ones are multiples of the rows of a batch, native.INFER is worked out.
  function ops.reshape_raw(x, dims)
    return with_dims(ids.reshape, x, dims)
  end

  -- The rows of a batch in a trace as the library has them, a negative number (shapes.lua); nil: it is something else.
  local function rows_of(entry)
    return type(entry) == "table" and getmetatable(entry) and require("flow.tensor.shapes").raw(entry) or nil
  end

  -- A user's shape, a list or several numbers.
  local function dims_of(what, first, ...)
    local is_list = type(first) == "table" and not getmetatable(first)
    local list = is_list and first or { first, ... }
    if is_list and select("#", ...) > 0 then
      raise("%s takes a list or several numbers; %s is one argument too many", what, errors.describe((...)))
    end
    local key = next(list, #list > 0 and #list or nil)
    if key ~= nil and type(key) ~= "number" then raise("%s: unknown option %q", what, tostring(key)) end
    for i = 1, errors.check_list(what .. ": the shape", list) do
      local n = list[i]      -- beyond 2^53 it would become another number, INFER among them, as an int64_t
      if native.is_tensor(n) then      -- such as flow.prod(x.shape)
        if list == first then list, first = { unpack(list) }, nil end
        n = require("flow.tensor.shapes").value_of(what, i, n)
        list[i] = n
      end
      if not rows_of(n) and (type(n) ~= "number" or n ~= floor(n) or math.abs(n) >= 2 ^ 53) then
        raise("%s: dimension %d of the shape is %s, expected a whole number", what, i, errors.describe(n))
      end
    end
    return list
  end

  local function reshape(x, ...)
    x = operand(x, nil, "reshape()")
    local wanted, dims, inferred = dims_of("reshape()", ...), {}, nil
    for i = 1, #wanted do
      if rows_of(wanted[i]) then
        dims[i] = rows_of(wanted[i])
      elseif wanted[i] == -1 then
        if inferred then raise("reshape(): dimensions %d and %d are both -1, at most one can be worked out", inferred, i) end
        inferred, dims[i] = i, native.INFER
      elseif wanted[i] < 0 then
        raise("reshape(): dimension %d is %d; a dimension is a whole number from 0, or -1: worked out", i, wanted[i])
      else
        dims[i] = wanted[i]
      end
    end
    return ops.reshape_raw(x, dims)
  end

  takes "x, shape..."
  define_variadic(reshape, "reshape")
  takes "x, shape..."
  define_variadic(function(x, ...)
    local dims = {}
    for i, entry in ipairs(dims_of("broadcast_to()", ...)) do dims[i] = rows_of(entry) or entry end
    return with_dims(ids.broadcast_to, operand(x, nil, "broadcast_to()"), dims)
  end, "broadcast_to")

  define(function(x) return reshape(x, -1) end, "flatten", "ravel")

  -- The tensor, if it has this shape, of which -1 and false are any size. In a pipeline tensors of pictures and texts know their sizes, so
  -- that nothing is to be set.
  takes "x, shape: list"
  define(function(x, shape)
    x = operand(x, nil, "ensure_shape()")
    if type(shape) ~= "table" then raise("ensure_shape(): a shape is a list such as { -1, 3 }, got %s", errors.describe(shape)) end
    local dims = tensor.raw_shape(x)
    local fits, wanted = #dims == #shape, {}
    for i = 1, #shape do
      wanted[i] = rows_of(shape[i]) or shape[i] or -1
      if type(wanted[i]) ~= "number" then raise("ensure_shape(): dimension %d is %s", i, errors.describe(wanted[i])) end
      fits = fits and (wanted[i] == dims[i] or dims[i] < 0 or wanted[i] == -1)
    end
    if not fits then raise("ensure_shape(): the shape is %s, expected %s", tensor.shape_text(dims), tensor.shape_text(wanted)) end
    return x
  end, "ensure_shape")
  methods.set_shape = methods.ensure_shape

  -- axis: where the new one is in the result; a list of them: several.
  takes "x, axis = 1"
  define(function(x, axis)
    x = operand(x, nil, "expand_dims()")
    local dims = tensor.raw_shape(x)
    if type(axis) == "table" then dims = require("flow.tensor.composed.tools").with_axes(dims, axis, "expand_dims()")
    else table.insert(dims, axis_from(axis or 1, #dims + 1, "expand_dims()") + 1, 1) end
    return ops.reshape_raw(x, dims)
  end, "expand_dims")

  -- squeeze() drops all axes of length 1, squeeze(axis) or squeeze{1, 3} the named ones, which must have it.
  takes "x, axis?"
  define(function(x, axis)
    x = operand(x, nil, "squeeze()")
    local shape, drop, dims = tensor.raw_shape(x), {}, {}
    for _, a in ipairs(type(axis) == "table" and axis or { axis }) do
      local index = axis_from(a, #shape, "squeeze()") + 1
      if shape[index] ~= 1 then raise("squeeze(): axis %d of shape %s is not 1", a, tensor.shape_text(shape)) end
      drop[index] = true
    end
    for i = 1, #shape do
      if not (drop[i] or (axis == nil and shape[i] == 1)) then dims[#dims + 1] = shape[i] end
    end
    return ops.reshape_raw(x, dims)
  end, "squeeze")

  local function permute(x, axes, what)
    x = operand(x, nil, what)
    local rank, attributes = rank_of(x), native.attributes()
    if axes and #axes ~= rank then raise("%s: %d axes named for a tensor of rank %d", what, #axes, rank) end
    attributes.transpose.rank = rank
    local seen = {}
    for i = 0, rank - 1 do
      local axis = axes and axis_from(axes[i + 1], rank, what) or rank - 1 - i
      if seen[axis] then raise("%s: axis %d is named twice", what, axis + 1) end
      seen[axis] = true
      attributes.transpose.axes[i] = axis
    end
    return apply1(ids.transpose, x, attributes)
  end

  -- transpose() reverses the axes, transpose{2, 1, 3} says which old axis each new one is.
  takes "x, axes?"
  define(function(x, axes)
    if axes ~= nil and type(axes) ~= "table" then
      raise("transpose() takes the list of all axes in their new order, e.g. {2, 1}; swapaxes(1, 2) swaps two")
    end
    return permute(x, axes, "transpose()")
  end, "transpose", "T")
  takes "x, axes..."
  define_variadic(function(x, first, ...)
    return permute(x, dims_of("permute()", first, ...), "permute()")
  end, "permute")
  define(function(x, a, b)
    x = operand(x, nil, "swapaxes()")
    local axes, rank = {}, rank_of(x)
    for i = 1, rank do axes[i] = i end
    local i, j = axis_from(a, rank, "swapaxes()") + 1, axis_from(b, rank, "swapaxes()") + 1
    axes[i], axes[j] = axes[j], axes[i]
    return permute(x, axes, "swapaxes()")
  end, "swapaxes")

  local function slice_attributes(begins, finishes, steps)
    local attributes = native.attributes()
    local slice = attributes.slice
    slice.rank = #begins
    for i = 1, #begins do
      slice.begin[i - 1], slice["end"][i - 1], slice.step[i - 1] = begins[i], finishes[i], steps and steps[i] or 1
    end
    return attributes
  end

  function ops.slice_from_zero(x, begins, finishes, steps) return apply1(ids.slice, x, slice_attributes(begins, finishes, steps)) end

  -- Zeros of these dimensions, with x where a slice with these begins and finishes would take it from.
  function ops.slice_into_zeros(x, begins, finishes, dims)
    local attributes = slice_attributes(begins, finishes)
    for i, n in ipairs(dims) do attributes.slice.dims[i - 1] = n end
    return apply1(ids.slice_gradient, x, attributes)
  end

  local function list_of(values, what)
    if type(values) ~= "table" or getmetatable(values) or errors.check_list(what, values) == 0 then
      raise("%s takes a list of tensors, got %s", what, type(values) == "table" and next(values) == nil and "an empty list"
        or errors.describe(values))
    end
    local list = {}
    for i = 1, #values do list[i] = operand(values[i], nil, what) end
    return list
  end

  -- concat({a, b, ...} [, axis = 1]) joins along an axis that exists, stack along a new one.
  local function concat(values, axis)
    local list = list_of(values, "flow.concat")
    local attributes = native.attributes()
    attributes.axis.axis = axis_from(axis or 1, rank_of(list[1]), "flow.concat")
    return apply_list(ids.concat, list, attributes)
  end
  takes "values, axis = 1"
  define(concat, "concat", "concatenate")
  takes "values, axis = 1"
  define(function(values, axis)
    local list = list_of(values, "flow.stack")
    local position = axis_from(axis or 1, rank_of(list[1]) + 1, "flow.stack") + 1
    local shape = tensor.shape_text(tensor.raw_shape(list[1]))
    for i = 1, #list do
      local own = tensor.shape_text(tensor.raw_shape(list[i]))
      if own ~= shape then raise("flow.stack: tensors 1 and %d have shapes %s and %s; these must be equal", i, shape, own) end
      list[i] = ops.expand_dims(list[i], position)
    end
    return concat(list, position)
  end, "stack")
  for _, name in ipairs { "concat", "concatenate", "stack" } do methods[name] = nil end
  tensor.stack = ops.stack

  return with_dims
end
