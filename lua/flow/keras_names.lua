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
  value = "x fill_value identifier",
  values = "xs x",
  variables = "loop_vars",
  widths = "pad_width",
  x = "inputs a array tensor variable",
  xs = "elems elements",
}

local keras_names = {}
for name, text in pairs(texts) do
  keras_names[name] = {}
  for other in text:gmatch "%S+" do table.insert(keras_names[name], other) end
end

return keras_names
