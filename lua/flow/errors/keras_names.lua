-- keras_names.lua: what Keras calls parameters that have another name here: ops.clip(x, x_min=0) is flow.clip(x, { x_min = 0 }), too.
--
-- Name here -> Keras' names. A name that a function has itself is not looked up; of two parameters the first one has it.

local texts = {
  a = "x1 x axis1", b = "x2 y axis2",
  body = "body_fun",
  choices = "choicelist",
  condition = "pred cond",
  conditions = "condlist",
  cuts = "indices_or_sections",
  entry = "config name",
  equation = "subscripts",
  f = "fun func function pyfunc",
  high = "x_max", low = "x_min",
  labels = "x inputs",
  m = "M", n = "N x",
  path = "filepath",
  position = "index", positions = "indices",
  shallow = "shallow_structure",
  shape = "newshape",
  starts = "start_indices",
  state = "init_val",
  text = "json_string",
  value = "x fill_value identifier initial_value initializer",
  values = "xs x",
  variables = "loop_vars",
  widths = "pad_width",
  x = "inputs a array tensor variable",
  xs = "elems elements",
}

local errors = require "flow.errors"

local keras_names, known = {}, {}
for name, text in pairs(texts) do
  known[name] = {}
  for other in text:gmatch "%S+" do known[name][other] = true end
end

-- The parameter of a record (calls.lua) that Keras calls `name`, or nil. Methods that are no ops take tables of values by names: of theirs
-- only a path, which is never a table, has one, as in model:save { filepath = path }.
function keras_names.find(record, name)
  local kind = record.title:match "^%a+"
  local is_op = kind == "flow" or kind == "tensor" or kind == "symbolic"
  for _, parameter in ipairs(record.positional) do
    local takes_names = parameter.kind and parameter.kind.named      -- a table with names is its value
    if not takes_names and (is_op or parameter.name == "path") and known[parameter.name] and known[parameter.name][name] then
      return parameter
    end
  end
end

-- A new table of options with the names that parameters have here. Raises if a parameter is given under both of its names.
function keras_names.renamed(record, given)
  local named = {}
  for key, value in pairs(given) do
    local parameter = record.by_name[key]
    local own = parameter and parameter.name or key
    if own ~= key and given[own] ~= nil then errors.raise("%s: %s is given twice, as %s and as %s", record.title, own, own, key) end
    named[own] = value
  end
  return named
end

return keras_names
