-- shapes.lua: shapes as users give and get them. In a traced function the rows of a batch have no number yet: x.shape[1] stands for them,
-- as flow.shape(x)[1] does, in shapes (flow.random.normal { x.shape[1], 8 }, also times a whole number) and, as a tensor, in formulas.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"

local C, raise = native.C, errors.raise
local shapes = {}

---- rows of a batch ------------------------------------------------------------------------------------------------------------------

local Rows = {}      -- { times = multiple of the rows }

function shapes.is_rows(value)
  return type(value) == "table" and getmetatable(value) == Rows
end

local function rows(times)
  errors.obstacles = errors.obstacles + 1
  return setmetatable({ times = times }, Rows)
end

-- Their number as a float32 tensor of the trace.
function Rows.__tensor(self)
  local list, out = native.pointers { ops.full_raw(nil, { -rawget(self, "times") }, 0, C.FLOW_FLOAT32) }, native.out("flow_tensor")
  native.try(C.flow_apply, native.context, C.flow_op_find("element_count"), list, 1, nil, out)
  return native.tensor(out[0])
end

local function is_factor(value) return type(value) == "number" and value >= 1 and value == math.floor(value) end

function Rows.__mul(a, b)
  if is_factor(a) then a, b = b, a end
  if shapes.is_rows(a) and is_factor(b) then return rows(rawget(a, "times") * b) end
  return ops.mul(a, b)
end
function Rows.__add(a, b)
  if shapes.is_rows(a) and shapes.is_rows(b) then return rows(rawget(a, "times") + rawget(b, "times")) end
  return ops.add(a, b)
end
for _, name in ipairs { "sub", "div", "pow", "mod" } do
  Rows["__" .. name] = function(a, b) return ops[name](a, b) end
end
Rows.__unm = function(a) return ops.neg(a) end      -- Lua gives the operand twice
Rows.__lt = function() tensor.unknown_rows("what is compared") end
Rows.__le = Rows.__lt
Rows.__tostring = function(self) return tensor.shape_text { -rawget(self, "times") } end
Rows.__index = function(self, key)
  local method = native.methods[key]
  if not method then raise("the number of rows of a batch has no field %q", tostring(key)) end
  return function(_, ...) return method(Rows.__tensor(self), ...) end
end

---- lists of dimensions ---------------------------------------------------------------------------------------------------------------

-- Dimensions as the library has them, negative where they count rows of a batch, as users get them.
function shapes.of(raw)
  local shape = {}
  for i, n in ipairs(raw) do shape[i] = n < 0 and rows(-n) or n end
  return shape
end

-- How many elements a shape with the rows of a batch in it has.
function shapes.size_of(raw)
  local times = -1
  for _, n in ipairs(raw) do times = times * n end
  return rows(times)
end

-- Raises, and notes for Dataset:map, that a number of rows is what a function cannot be traced for. verb: "is" if it is nil.
function shapes.unknown(what, verb)
  require("flow.scopes").own().needs_values = true
  raise("%s %s the number of rows of the batch, which a traced function does not know: use x.shape[1] in shapes and formulas, or run it "
    .. "eagerly", what, verb or "is")
end

-- Of rows of a batch: the dimension as the library has it; nil: it is something else.
function shapes.raw(entry)
  return shapes.is_rows(entry) and -rawget(entry, "times") or nil
end

-- What a user gave for a shape as a list, in which rows of a batch may be.
function shapes.list(what, given)
  if type(given) == "number" or shapes.is_rows(given) then return { given } end
  if type(given) ~= "table" or getmetatable(given) then
    raise("%s: a shape is a list of dimensions such as {2, 3}, got %s", what, errors.describe(given))
  end
  return given
end

-- A dimension that is a tensor with one value, which Dataset:map gives if there is none; a tensor of more as it is.
function shapes.value_of(what, i, n)
  if C.flow_tensor_size(native.pointer(n)) ~= 1 then return n end
  if C.flow_tensor_is_symbolic(native.pointer(n)) == 0 then return tonumber(n:item()) end
  require("flow.scopes").own().needs_values = true
  raise("%s: dimension %d of a shape is a tensor, which has no value while the function is traced: x.shape and flow.shape(x) have " ..
    "numbers, and one dimension may be -1", what, i)
end

-- The values of a tensor of sizes as a list; one that has none as it is: Dataset:map calls its function with values then.
function shapes.values_of(sizes)
  if C.flow_tensor_is_symbolic(native.pointer(sizes)) == 0 then return sizes:totable() end
  require("flow.scopes").own().needs_values = true
  return sizes
end

-- The dimensions of a shape that a user gave, as the library has them.
function shapes.check_dims(what, given)
  local list, raw = shapes.list(what, given), {}
  for i = 1, errors.check_list(what .. ": the shape", list) do
    local n = list[i]
    if native.is_tensor(n) then n = shapes.value_of(what, i, n) end
    if shapes.is_rows(n) then
      if C.flow_trace_depth(native.context) == 0 then
        raise("%s: dimension %d is the rows of a batch in a trace that has ended", what, i)
      end
      if i > 1 then raise("%s: dimension %d is the rows of a batch, which only the first one can be", what, i) end
    elseif type(n) ~= "number" or n < 0 or n ~= math.floor(n) or n >= 2 ^ 53 then
      raise("%s: dimension %d of a shape is a whole number from 0, got %s", what, i, errors.describe(n))
    end
    raw[i] = shapes.raw(n) or n
  end
  return raw
end

return shapes
