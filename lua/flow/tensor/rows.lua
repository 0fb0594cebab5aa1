-- rows.lua: some rows of a tensor, as a view of it.

local native = require "flow.ffi"

local C = native.C
local out = native.out("flow_tensor")

-- Rows first+1 .. first+count of t as a view.
return function(t, first, count)
  local shape = t.shape
  local dims, rank = native.dims(shape)
  local strides, stride = native.dims(shape), 1
  for i = rank - 1, 0, -1 do
    strides[i] = stride
    stride = stride * dims[i]
  end
  dims[0] = count
  native.check(C.flow_tensor_view(native.pointer(t), rank, dims, strides, first * tonumber(strides[0]), out))
  return native.tensor(out[0])
end
