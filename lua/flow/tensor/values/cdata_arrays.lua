-- cdata_arrays.lua: arrays of numbers that LuaJIT's FFI made, as flow.tensor and flow.frombuffer take them.

local native = require "flow.ffi"

local cdata_arrays = {}

-- dtype name, dimensions and address of a numeric cdata array such as ffi.new("float[2][3]"); nil for anything else. Of a uint64_t array
-- the dtype is int64 and the fourth result true.
local element_types = {
  float = "float32", double = "float64", ["signed char"] = "int8", char = "int8", ["unsigned char"] = "uint8", int = "int32",
  int8_t = "int8", uint8_t = "uint8", int32_t = "int32", int64_t = "int64", long = "int64", ["long long"] = "int64", bool = "bool",
}
local unsigned_types = { uint64_t = true, ["unsigned long"] = true, ["unsigned long long"] = true }
-- Of an array of LuaJIT's FFI: its dtype, its shape, a pointer to its first element, which is valid as long as the array is, and true where
-- its elements are unsigned and of 64 bits; nil for another cdata. The name of its type says the sizes; where the first one is open
-- ("[?]"), the array's bytes do.
function cdata_arrays.describe(value)
  local element, suffix = tostring(value):match("^cdata<(.-) ?%(?&?%)?(%[[%[%]%d?]*)>")
  element = element and element:gsub("^const ", "")
  local unsigned = unsigned_types[element]
  local dtype = unsigned and "int64" or element_types[element]
  if not dtype then return nil end
  local shape, known = {}, 1
  for n in suffix:gmatch("%d+") do
    shape[#shape + 1] = tonumber(n)
    known = known * tonumber(n)
  end
  if suffix:find("[]", 1, true) or suffix:find("[?]", 1, true) then
    table.insert(shape, 1, native.sizeof(value) / native.C.flow_dtype_size(native.dtypes[dtype]) / known)
  end
  return dtype, shape, native.cast("void *", value), unsigned
end

return cdata_arrays
