-- export.lua: model:export(path): the trained model for other programs.
--
--   model:export("model.onnx")      the prediction step as an ONNX model
--   model:export("flowers")         a folder for a server: model.onnx, model.keras and signature.json, which says what goes in and
--                                   comes out
--
-- options: format = "onnx": the ONNX model, whatever the path ends in; inputs = { { shape = {-1, 4}, dtype = "float32", name = "x" }, ... }
-- for a model that does not know its inputs (one written in Lua) or their sizes; class_names = { ... } for signature.json.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local symbolic = require "flow.layers.symbolic"
local several = require "flow.layers.several"
local models = require "flow.model"
local named_data = require "flow.model.named_data"
local io = require "flow.io"
local json = require "flow.json"
local quantization = require "flow.layers.quantization"
local workers = require "flow.distribute.model_workers"
local once = require("flow.distribute.saving").once

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local Model = models.Model

local takes = require("flow.signature").takes

---- what goes in and comes out ----------------------------------------------------------------------------------------------

-- Gives each name once: dense, dense_1, dense_2.
local function unique(names, taken)
  for i, name in ipairs(names) do
    local candidate, n = name, 0
    while taken[candidate] do
      n = n + 1
      candidate = name .. "_" .. n
    end
    taken[candidate], names[i] = true, candidate
  end
  return names
end

-- The option inputs, checked, with defaults for dtype and name.
local function given_inputs(list)
  local inputs = {}
  if type(list) ~= "table" or #list == 0 then raise("export: inputs is a list of { shape = {-1, 4} }, got %s", errors.describe(list)) end
  for i, entry in ipairs(list) do
    if type(entry) ~= "table" or type(entry.shape) ~= "table" then
      raise("export: entry %d of inputs is { shape = {-1, 4} }, got %s", i, errors.describe(entry))
    end
    errors.check_options("export: inputs", entry, { shape = true, dtype = true, name = true })
    for axis = 1, errors.check_list(("export: the shape of input %d"):format(i), entry.shape) do
      if type(entry.shape[axis]) ~= "number" then
        raise("export: size %d of input %d is %s, expected a number", axis, i, errors.describe(entry.shape[axis]))
      end
    end
    if entry.name ~= nil and type(entry.name) ~= "string" then
      raise("export: the name of input %d is a string, got %s", i, errors.describe(entry.name))
    end
    inputs[i] = { shape = entry.shape, dtype = entry.dtype or "float32", name = entry.name or (i == 1 and "input" or "input_" .. i) }
    native.dtype(inputs[i].dtype)
  end
  return inputs
end

-- { name =, shape =, dtype = } of every input.
local function inputs_of(model, options)
  if options.inputs ~= nil then return given_inputs(options.inputs) end
  local known = rawget(model, "inputs")
  if not known then
    raise("%s: export needs the shape of the input: build the model, or give inputs = { { shape = {-1, 4} } }", object.title(model))
  end
  local inputs = {}
  for i, input in ipairs(known) do inputs[i] = { shape = input.shape, dtype = input.dtype, name = input.name } end
  return inputs
end

-- What runs before the plan, on strings and hashes, would be missing: the file would take its results for the inputs.
local function check_layers(model)
  local host = rawget(model, "_host")
  if not host then return end
  raise("%s: export: %s prepares data on the host and has no ONNX form: export a model of the layers after it", object.title(model),
    object.title(host.nodes[1].layer))
end

-- Padding, means and shapes are numbers in the file, which follow from the sizes.
local function check_sizes(model, inputs)
  for _, input in ipairs(inputs) do
    for axis = 2, #input.shape do
      if input.shape[axis] < 0 then
        raise("%s: export: the input %q has the shape %s, and an ONNX model is written for one size: give it, for example inputs = " ..
          "{ { shape = {-1, 224, 224, 3} } }", object.title(model), input.name, symbolic.shape_text(input.shape))
      end
    end
  end
end

-- What a model returned, a tensor, lists or tables by name of them at any depth, as one list, and the names of its entries: those that the
-- model's outputs have, else the names in the tables. Tables are in the order of the model's outputs, else of their names.
local function flattened(model, results)
  local list, names = {}, {}
  local known = named_data.names(model, "outputs")
  local function add(value, name)
    if type(value) ~= "table" or getmetatable(value) then
      list[#list + 1] = value
      names[#list] = known and known[#list] or name or "output"
    elseif named_data.is(value) then
      local keys = value == results and known or {}
      if keys ~= known then
        for key in pairs(value) do keys[#keys + 1] = key end
        table.sort(keys)
      end
      for _, key in ipairs(keys) do add(value[key], key) end
    else
      for _, entry in ipairs(value) do add(entry, name) end
    end
  end
  add(results)
  return list, names
end

---- writing -------------------------------------------------------------------------------------------------------------------

-- A list of texts as a C array, which points into them: the list has to live until the call is over.
local function texts(list)
  local pointers = native.array("const char *", #list)
  for i, text in ipairs(list) do pointers[i - 1] = text end
  return pointers
end

-- Calls the model on inputs of the trace that is open; returns its outputs as a list, and their names.
local function run(model, inputs)
  local tensors = {}
  for i, input in ipairs(inputs) do tensors[i] = symbolic.trace_input(input.shape, input.dtype) end
  return flattened(model, several.gathered(model(#tensors == 1 and tensors[1] or tensors, { training = false })))
end

-- Calls f while a trace is open that is thrown away.
local function in_trace(f)
  native.while_tracing(function() check(C.flow_trace_begin(context)) end, f)
end

-- Writes the ONNX model, of float32; returns what goes in and comes out.
local function write_floats(model, path, options)
  check_layers(model)
  local inputs, outputs = inputs_of(model, options), {}
  check_sizes(model, inputs)
  if not rawget(model, "inputs") then in_trace(function() run(model, inputs) end) end      -- variables exist before the step is traced
  in_trace(function()
    local results, names = run(model, inputs)
    local input_names = {}
    for i, input in ipairs(inputs) do input_names[i] = input.name end
    local taken = {}
    unique(input_names, taken)
    unique(names, taken)
    for i, result in ipairs(results) do
      local dtype = native.dtype_names[C.flow_tensor_dtype(native.pointer(result))]
      outputs[i] = { name = names[i], shape = symbolic.dims(result), dtype = dtype }
    end
    for i, name in ipairs(input_names) do inputs[i].name = name end
    local pointers, count = native.pointers(results)
    local status = C.flow_trace_save_onnx(context, path, model.name, pointers, count, texts(input_names), #inputs, texts(names))
    if status ~= 0 then raise("%s: export: %s", object.title(model), native.string(C.flow_last_error())) end
  end)
  return inputs, outputs
end

-- The same of a model that is quantized: the file computes in floats.
local function write_onnx(model, path, options) return quantization.in_floats(model, write_floats, model, path, options) end

-- Inputs or outputs for signature.json; a size that varies is null.
local function described(list)
  local entries = {}
  for i, entry in ipairs(list) do
    local shape = {}
    for k, n in ipairs(entry.shape) do shape[k] = n < 0 and json.null or n end
    entries[i] = { name = entry.name, shape = json.list(shape), dtype = entry.dtype }
  end
  return json.list(entries)
end

-- Names of classes as a JSON list; nil if there are none.
local function check_class_names(names)
  if names == nil then return nil end
  if type(names) ~= "table" then raise("export: class_names is a list of strings, got %s", errors.describe(names)) end
  local list = {}
  for i, name in ipairs(names) do
    if type(name) ~= "string" then raise("export: class_names[%d] is %s, expected a string", i, errors.describe(name)) end
    list[i] = name
  end
  return json.list(list)
end

-- Writes the folder for a server. A failure on the way leaves the files that were written before.
local function write_folder(model, folder, options)
  local class_names = check_class_names(options.class_names or model.class_names)
  io.makedirs(folder)
  local inputs, outputs = write_onnx(model, folder .. "/model.onnx", options)
  model:save(folder .. "/model.keras", { include_optimizer = false })
  io.write(folder .. "/signature.json",
    json.encode { name = model.name, inputs = described(inputs), outputs = described(outputs), class_names = class_names } .. "\n")
end

-- See the head of the file. verbose is taken, as Keras has it, and does nothing. Of several workers the chief writes.
takes "path, { format?, inputs?, class_names?, verbose? }"
function Model:export(path, options)
  path = io.path(path, "export"):gsub("(.)/+$", "%1")
  local name, format = path:match("[^/]*$"), options.format
  local ending = format == "onnx" or name:match("^.+%.(%w+)$")
  if format ~= nil and format ~= "onnx" then
    raise("export: format is 'onnx', got %s; a path without an ending gives a folder that also has model.keras", errors.describe(format))
  end
  if ending and ending ~= true and ending:lower() ~= "onnx" then
    raise("export: %q: a path that ends in .onnx gives an ONNX model, one without an ending a folder with model.onnx, model.keras and " ..
      "signature.json", path)
  end
  once(workers.of(self), path, function()
    if ending then write_onnx(self, path, options) else write_folder(self, path, options) end
  end)
end
