-- text_padding.lua: padded_batch with another text than "": padding_values = "<pad>".
--
-- C pads with empty texts. So a component of ones is added for each component with another padding text; C pads it with zeros, and where it
-- is zero the padding text is put in.

local errors = require "flow.errors"
local tensor = require "flow.tensor"
local strings = require "flow.tensor.strings"

-- Appends to each element, for each of these components, ones of its shape, which padded_batch fills up with zeros.
local function with_marks(dataset, internal, marked)
  local specs, count = { unpack(dataset._specs) }, #dataset._specs
  for i, place in ipairs(marked) do specs[count + i] = { shape = specs[place].shape, dtype = "uint8" } end
  return internal.transform({ dataset }, specs, false, dataset:cardinality(), function(pull, give)
    for components in pull do
      local all = { unpack(components, 1, count) }
      for i, place in ipairs(marked) do
        all[count + i] = tensor.ones(strings.is(all[place]) and all[place].shape or {}, { dtype = "uint8" })
      end
      give(all)
    end
  end)
end

-- Texts with `text` wherever the marks are zeros.
local function filled(texts, marks, text)
  local list, shape = strings.flat("padded_batch", texts)
  local kept = marks:reshape({ #list }):totable()
  for i = 1, #list do
    if kept[i] == 0 then list[i] = text end
  end
  return strings.of(list, shape)
end

-- What dataset:padded_batch(size, shapes, fill, drop_remainder) gives; fill: a text, or a list in which texts are.
return function(dataset, internal, size, shapes, fill, drop_remainder)
  local numbers, marked, all_shapes = {}, {}, nil
  local specs, own = dataset._specs, dataset._structure
  for i, spec in ipairs(specs) do
    local value = fill
    if type(fill) == "table" then value = fill[i] end
    local is_text = type(value) == "string"
    if is_text and spec.dtype ~= "string" then
      errors.raise("padded_batch: component %d is %s, which is not padded with the string %q", i, spec.dtype, value)
    end
    numbers[i] = is_text and 0 or value or 0
    if is_text then marked[#marked + 1] = i end
  end
  if shapes then
    all_shapes = type(shapes[1]) == "table" and { unpack(shapes) } or { shapes }
    for i, place in ipairs(marked) do all_shapes[#specs + i] = all_shapes[place] end
  end
  for i = 1, #marked do numbers[#specs + i] = 0 end
  local batches = with_marks(dataset, internal, marked):padded_batch(size, { padded_shapes = all_shapes, padding_values = numbers,
    drop_remainder = drop_remainder })
  return internal.transform({ batches }, { unpack(batches._specs, 1, #specs) }, own, batches:cardinality(), function(pull, give)
    for components in pull do
      local all = { unpack(components, 1, #specs) }
      for i, place in ipairs(marked) do
        all[place] = filled(all[place], components[#specs + i], type(fill) == "table" and fill[place] or fill)
      end
      give(all)
    end
  end)
end
