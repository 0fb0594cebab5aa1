-- elements.lua: elements of datasets between Lua and C: texts are strings in Lua and uint8 tensors in C, everything else is a tensor.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"

local C, raise = native.C, errors.raise
local elements = {}

---- signatures --------------------------------------------------------------------------------------------------------------

-- { shape =, dtype = } of every component of a flow_dataset; a text is a scalar of dtype "string".
function elements.specs(handle)
  local list = {}
  for i = 0, C.flow_dataset_component_count(handle) - 1 do
    local component = C.flow_dataset_component(handle, i)
    local shape, is_text = {}, component.text ~= 0
    for axis = 0, component.rank - (is_text and 2 or 1) do shape[axis + 1] = tonumber(component.shape[axis]) end
    list[i + 1] = { shape = shape, dtype = is_text and "string" or native.dtype_names[component.dtype] }
  end
  return list
end

function elements.spec_text(spec)
  local dims = {}
  for i, n in ipairs(spec.shape) do dims[i] = n < 0 and "None" or ("%d"):format(n) end
  return ("%s {%s}"):format(spec.dtype, table.concat(dims, ", "))
end

local SPEC = { shape = true, dtype = true, name = true }

-- The flow_component array of a list of { shape =, dtype = }, and their number.
function elements.components(what, specs)
  if type(specs) ~= "table" then raise("%s: output_signature is a list of { shape =, dtype = }, got %s", what, errors.describe(specs)) end
  if #specs < 1 or #specs > C.FLOW_MAX_COMPONENTS then
    raise("%s: an element has 1 to %d components, got %d", what, C.FLOW_MAX_COMPONENTS, #specs)
  end
  local list = native.array("flow_component", C.FLOW_MAX_COMPONENTS)
  for i, spec in ipairs(specs) do
    errors.check_options(what .. ": output_signature", spec, SPEC)
    local shape, component = spec.shape or {}, list[i - 1]
    if spec.dtype == "string" then
      if #shape > 0 then raise("%s: component %d: a text has the shape {}", what, i) end
      component.dtype, component.rank, component.text, component.shape[0] = native.dtype("uint8"), 1, 1, -1
    else
      if #shape > C.FLOW_MAX_RANK then raise("%s: component %d has more than %d dimensions", what, i, C.FLOW_MAX_RANK) end
      component.dtype, component.rank, component.text = native.dtype(spec.dtype or "float32"), #shape, 0
      for axis, n in ipairs(shape) do component.shape[axis - 1] = n end
    end
  end
  return list, #specs
end

-- The signature that these values of a generator have.
function elements.specs_of_values(values)
  local specs = {}
  for i, value in ipairs(values) do
    if type(value) == "string" then
      specs[i] = { shape = {}, dtype = "string" }
    else
      local t = ops.operand(value, nil, "from_generator")
      specs[i] = { shape = t.shape, dtype = t.dtype }
    end
  end
  return specs
end

---- texts --------------------------------------------------------------------------------------------------------------------

-- A list of strings as bytes and offsets.
function elements.pack_texts(what, texts)
  local starts = tensor.new(native.dtype("int64"), { #texts + 1 })
  local at, position = native.data(starts), 0
  for i, text in ipairs(texts) do
    if type(text) ~= "string" then raise("%s: entry %d of a list of texts is %s", what, i, errors.describe(text)) end
    position = position + #text
    at[i] = position
  end
  local bytes = tensor.new(native.dtype("uint8"), { position })
  native.copy(native.data(bytes), table.concat(texts), position)
  return bytes, starts
end

local function text_tensor(text)
  local t = tensor.new(native.dtype("uint8"), { #text })
  native.copy(native.data(t), text, #text)
  return t
end

-- The text of a contiguous uint8 tensor, or the list of texts of a batch of them.
local function to_text(t)
  local pointer = native.pointer(t)
  local bytes = native.cast("const char *", C.flow_tensor_data(pointer))
  if C.flow_tensor_rank(pointer) == 1 then return native.string(bytes, C.flow_tensor_size(pointer)) end
  local list, length = {}, C.flow_tensor_dim(pointer, 1)
  for row = 0, C.flow_tensor_dim(pointer, 0) - 1 do
    list[row + 1] = native.string(bytes + row * length, length):gsub("%z+$", "")
  end
  return list
end

---- elements -------------------------------------------------------------------------------------------------------------------

-- The values of a flow_element, which becomes empty. is_text: of every component.
function elements.take(element, is_text)
  local values, count = {}, element.count
  for i = 1, count do values[i] = native.tensor(element.tensors[i - 1]) end
  element.count = 0
  for i = 1, count do
    if is_text[i] then values[i] = to_text(values[i]) end
  end
  return values, count
end

-- Fills a flow_element with values, as the specs say. Returns what must be kept until it was used.
function elements.fill(what, element, values, specs)
  local anchors = {}
  if #values ~= #specs then raise("%s: an element has %d values, expected %d", what, #values, #specs) end
  for i, spec in ipairs(specs) do
    local value = values[i]
    if spec.dtype == "string" then
      if type(value) ~= "string" then raise("%s: value %d is %s, expected a string", what, i, errors.describe(value)) end
      anchors[i] = text_tensor(value)
    else
      anchors[i] = tensor.on_host(ops.operand(value, native.is_tensor(value) and nil or spec.dtype, what))
    end
    element.tensors[i - 1] = native.pointer(anchors[i])
  end
  element.count = #specs
  return anchors
end

return elements
