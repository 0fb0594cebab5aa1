-- elements.lua: elements of datasets between Lua and C: texts are strings in Lua (flow.tensor.strings) and uint8 tensors in C, everything
-- else is a tensor.
--
-- A spec is { shape = sizes, -1 for one that varies, dtype = }; a text is a scalar of dtype "string" in Lua, and in C a component of one
-- axis more, the bytes, with `text` set.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local strings = require "flow.tensor.strings"
local structure = require "flow.data.structure"

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

-- "int32 {None, 3}", for messages.
function elements.spec_text(spec)
  local dims = {}
  for i, n in ipairs(spec.shape) do dims[i] = n < 0 and "None" or ("%d"):format(n) end
  return ("%s {%s}"):format(spec.dtype, table.concat(dims, ", "))
end

local SPEC = { shape = true, dtype = true, name = true }

-- Raises unless a shape is a list of sizes, -1 for one that varies.
local function check_shape(what, i, shape)
  if type(shape) ~= "table" then
    raise("%s: the shape of component %d is a list of sizes, got %s", what, i, errors.describe(shape))
  end
  for axis = 1, errors.check_list(("%s: the shape of component %d"):format(what, i), shape) do
    local size = shape[axis]
    if type(size) ~= "number" or size < -1 or size > 2 ^ 53 or size ~= math.floor(size) then
      raise("%s: size %d of component %d is %s, expected a whole number from 0, or -1 for one that varies", what, axis, i,
        errors.describe(size))
    end
  end
end

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
    check_shape(what, i, shape)
    if #shape + (spec.dtype == "string" and 1 or 0) > C.FLOW_MAX_RANK then
      raise("%s: component %d has more than %d dimensions", what, i, C.FLOW_MAX_RANK)
    end
    if spec.dtype == "string" then
      component.dtype, component.rank, component.text = native.dtype("uint8"), #shape + 1, 1
      for axis, n in ipairs(shape) do component.shape[axis - 1] = n end
      component.shape[#shape] = -1
    else
      component.dtype, component.rank, component.text = native.dtype(spec.dtype or "float32"), #shape, 0
      for axis, n in ipairs(shape) do component.shape[axis - 1] = n end
    end
  end
  return list, #specs
end

-- The components that an output_signature lists, and their structure (structure.lua): an entry may be a table of them by name.
function elements.signature(what, given)
  local function is_spec(value)
    if type(value) ~= "table" then return true end
    for name in pairs(value) do
      if not SPEC[name] then return false end
    end
    local shape = value.shape
    return type(shape) ~= "table" or type(shape[1]) ~= "table" and shape.dtype == nil
  end
  if type(given) ~= "table" then return given, false end
  if given.dtype or given.shape or not is_spec(given) and #given == 0 then given = { given } end
  -- structure.of works on values; here each component's spec stands for its value, and tables by names or lists for elements of that form.
  local function marked(entry, depth)      -- with something that has no parts in place of each component
    if is_spec(entry) then return setmetatable({}, {}) end
    local parts = {}
    depth = errors.deeper(what, depth)
    for key, part in pairs(entry) do parts[key] = marked(part, depth) end
    return parts
  end
  local own, list = structure.of(what, marked(given)), {}
  if not own then return given, false end
  for i, entry in ipairs(given) do
    for _, component in ipairs(structure.components(own[i], entry)) do list[#list + 1] = component end
  end
  return list, own
end

-- The signature that options give, as output_signature or as output_types, a dtype or a list of them, with output_shapes; nil: none.
function elements.asked(what, options)
  local dtypes, shapes = options.output_types, options.output_shapes
  if dtypes == nil and shapes == nil then return options.output_signature end
  if dtypes == nil or options.output_signature ~= nil then
    raise("%s: output_shapes go with output_types, and both in place of output_signature", what)
  end
  local single = type(dtypes) == "string"
  if single then dtypes, shapes = { dtypes }, { shapes } end
  local specs = {}
  for i = 1, errors.check_list(what .. ": output_types", dtypes) do specs[i] = { dtype = dtypes[i], shape = (shapes or {})[i] } end
  return specs
end

-- The signature that these values of a generator have.
function elements.specs_of_values(values)
  local specs = {}
  for i, value in ipairs(values) do
    if strings.are(value) then
      specs[i] = { shape = type(value) == "string" and {} or strings.tensor("from_generator", value).shape, dtype = "string" }
    else
      local t = ops.operand(value, nil, "from_generator")
      specs[i] = { shape = t.shape, dtype = t.dtype }
    end
  end
  return specs
end

---- elements -------------------------------------------------------------------------------------------------------------------

-- The values of a flow_element, which becomes empty: its references pass to the tensors. is_text: of every component. Texts are read after
-- all tensors are owned, so that an error leaks none.
function elements.take(element, is_text)
  local values, count = {}, element.count
  for i = 1, count do values[i] = native.tensor(element.tensors[i - 1]) end
  element.count = 0
  for i = 1, count do
    if is_text[i] then values[i] = strings.read(values[i]) end
  end
  return values, count
end

-- Fills a flow_element with values, as the specs say. Returns what must be kept alive until the element was used: it has pointers into
-- these. Raises for another number of values and for texts where there are none; the library checks dtypes and shapes.
function elements.fill(what, element, values, specs)
  local anchors = {}
  if #values ~= #specs then raise("%s: an element has %d values, expected %d", what, #values, #specs) end
  for i, spec in ipairs(specs) do
    local value = values[i]
    if spec.dtype == "string" then
      if not strings.are(value) then
        raise("%s: value %d is %s, expected %s", what, i, errors.describe(value), #spec.shape == 0 and "a string" or "strings")
      end
      anchors[i] = strings.padded(what, value)
    else
      anchors[i] = tensor.on_host(ops.operand(value, native.is_tensor(value) and nil or spec.dtype, what))
    end
    element.tensors[i - 1] = native.pointer(anchors[i])
  end
  element.count = #specs
  return anchors
end

-- The components of an element of zeros and empty texts. Sizes that vary are 1, or 2 where those of `others`, components of another
-- element, are 1.
function elements.blank(specs, others)
  local values = {}
  for i, spec in ipairs(specs) do
    local shape, count, other = {}, 1, others and type(others[i]) ~= "string" and others[i].shape
    for axis, size in ipairs(spec.shape) do
      shape[axis] = size < 0 and (other and other[axis] == 1 and 2 or 1) or size
      count = count * shape[axis]
    end
    if spec.dtype ~= "string" then values[i] = tensor.zeros(shape, { dtype = spec.dtype })
    elseif #shape == 0 then values[i] = ""
    else
      local texts = {}
      for k = 1, count do texts[k] = "" end
      values[i] = tensor.tensor(texts):reshape(shape)
    end
  end
  return values
end

return elements
