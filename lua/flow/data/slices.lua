-- slices.lua: Dataset.from_tensor_slices and Dataset.from_tensors: what is in memory as elements.

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local strings = require "flow.tensor.strings"
local structure = require "flow.data.structure"

local C, raise = native.C, errors.raise
local takes = signature.takes

-- Whether a value is texts: a list of strings, or a tensor of them.
local function is_text_list(value)
  return type(value) == "table" and strings.are(value)
end

local SIDE_BY_SIDE = "; an element's components stand side by side: { x1, x2, y }"

-- Whether a value is a plain list whose first entry is a tensor.
local function is_list_of_tensors(value)
  return type(value) == "table" and not getmetatable(value) and native.is_tensor(value[1])
end

-- Whether all entries of a list are strings.
local function are_texts(value)
  for _, entry in ipairs(value) do
    if type(entry) ~= "string" then return false end
  end
  return true
end

-- The components of from_tensor_slices { x, y }, and their structure: a list is several components when its first entry is a tensor, a
-- list of texts or a table by names. whole: values are not cut into elements, so that one string may be a component, too.
local function components_of(what, value, whole)
  if structure.is_named(value) then return structure.flatten(what, { value }) end
  if type(value) ~= "table" or getmetatable(value) then return { value }, false end
  local first = value[1]
  if type(first) == "string" then
    if whole and not are_texts(value) then return value, false end
    return { value }, false
  end
  if structure.of(what, value) then return structure.flatten(what, value) end
  errors.check_list(what, value)
  for i, entry in ipairs(value) do
    if is_list_of_tensors(entry) then raise("%s: entry %d is a list of tensors%s", what, i, SIDE_BY_SIDE) end
  end
  if native.is_tensor(first) or is_text_list(first) or (type(first) == "table" and getmetatable(first)) then return value, false end
  return { value }, false
end

-- Rows of strings, each of which has the shape of the others.
local function slices_of_strings(Dataset, value)
  local list, shape = strings.flat("from_tensor_slices", value)
  local dataset = Dataset.from_tensor_slices(list)
  for axis = #shape, 2, -1 do dataset = dataset:batch(shape[axis], { drop_remainder = true }) end
  return dataset
end

-- make(parents, f, ..., out): a Dataset of what the constructor f of flow.h makes.
return function(Dataset, make, out)
  -- Rows of tensors, nested lists of numbers and lists of texts, side by side or by name.
  takes "tensors: data -- from_tensor_slices { x, y } or { { age = x, kind = z }, y }"
  function Dataset.from_tensor_slices(value)
    if value == nil then raise("from_tensor_slices: there is no data") end
    local list, own = components_of("from_tensor_slices", value)
    local anchors = {}      -- what the arrays have pointers to, until C has its own references
    local tensors, offsets = native.out("flow_tensor", C.FLOW_MAX_COMPONENTS), native.out("flow_tensor", C.FLOW_MAX_COMPONENTS)
    if #list > C.FLOW_MAX_COMPONENTS then
      raise("from_tensor_slices: an element has at most %d components, got %d", C.FLOW_MAX_COMPONENTS, #list)
    end
    for i, entry in ipairs(list) do
      local values, starts
      if is_text_list(entry) and type(entry[1]) == "table" then      -- C has single texts: rows of them are batches of these
        local parts = {}
        for k, other in ipairs(list) do
          parts[k] = is_text_list(other) and slices_of_strings(Dataset, other) or
            Dataset.from_tensor_slices { ops.operand(other, nil, "from_tensor_slices") }
        end
        local dataset = Dataset.zip(parts)
        rawset(dataset, "_structure", own)
        return dataset
      end
      if is_text_list(entry) then
        values, starts = strings.pack("from_tensor_slices", entry)
        offsets[i - 1] = native.pointer(starts)
      else
        values = tensor.on_host(ops.operand(entry, nil, "from_tensor_slices"))
      end
      anchors[#anchors + 1] = { values, starts }
      tensors[i - 1] = native.pointer(values)
    end
    native.keep(anchors)
    local dataset = make({}, C.flow_dataset_from_slices, tensors, offsets, #list, out)
    rawset(dataset, "_structure", own)
    return dataset
  end

  -- One element: the tensors as they are.
  takes "tensors: data -- from_tensors { x, y }"
  function Dataset.from_tensors(value)
    local rows = {}
    local list, own = components_of("from_tensors", value, true)
    for i, entry in ipairs(list) do
      if is_text_list(entry) then rows[i] = strings.tensor("from_tensors", entry):expand_dims(1)
      elseif type(entry) == "string" then rows[i] = strings.of({ entry }, { 1 })
      else rows[i] = ops.operand(entry, nil, "from_tensors"):expand_dims(1) end
    end
    local dataset = Dataset.from_tensor_slices(rows)
    rawset(dataset, "_structure", own)
    return dataset
  end
end
