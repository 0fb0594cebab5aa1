-- rows_within.lua: flow.take along an axis after the first one, of eager tensors: rows of {outer n, inner}, whose numbers are outer * n +
-- positions, so that nothing is transposed. Used by array_ops.lua, which loads it when it is first needed.

local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"

local ops = tools.ops

-- positions: whole numbers from 0. gather(table, rows): the op. nil: there are more rows than int32 counts, or none.
return function(x, positions, axis, gather)
  local dims, result, outer, inner = tools.dims(x), {}, 1, 1
  for i, n in ipairs(dims) do
    if i < axis then outer, result[#result + 1] = outer * n, n
    elseif i > axis then inner = inner * n end
  end
  local n = dims[axis]
  if outer * n * inner == 0 or outer * n >= 2 ^ 31 or positions.size == 0 then return nil end
  for _, count in ipairs(tools.dims(positions)) do result[#result + 1] = count end
  for i = axis + 1, #dims do result[#result + 1] = dims[i] end
  local first = ops.reshape(tensor.arange(0, outer * n, n, { dtype = "int32" }), { outer, 1 })
  local rows = ops.reshape(positions:to("int32"), { 1, positions.size }) + first
  return ops.reshape_raw(gather(ops.reshape_raw(x, { outer * n, inner }), ops.reshape_raw(rows, { outer * positions.size })), result)
end
