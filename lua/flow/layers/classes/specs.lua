-- specs.lua: flow.shape and flow.TensorSpec: shapes as users ask for them, of symbolic tensors, too, and as they describe them.

local signature = require "flow.signature"
local ops = require "flow.tensor.ops"
local tensor = require "flow.tensor"
local strings = require "flow.tensor.strings"

local specs = signature.module "flow"

-- The dimensions of a tensor as a list, -1 where a symbolic one takes any. In a traced function the first one may stand for the rows of the
-- batch: it goes into other shapes, times a whole number as well, and into formulas.
function specs.shape(x)
  if type(x) == "table" and require("flow.layers.symbolic").is(x) then return x.shape end
  local of_strings = type(x) == "table" and strings.are(x) and select(2, strings.flat("flow.shape", x))
  return require "flow.tensor.shape_list" (of_strings or tensor.raw_shape(ops.operand(x, nil, "flow.shape")), tensor)
end

-- What output_signature of from_generator takes: { shape = { -1, 3 }, dtype = "int32" }.
signature.takes "shape?: list, dtype: string = 'float32', name?: string"
function specs.TensorSpec(shape, dtype, name)
  return require "flow.classes.printed" { shape = shape or {}, dtype = dtype, name = name }
end

return specs
