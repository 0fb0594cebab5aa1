-- legacy_models.lua: whole models in .h5 files, as Keras 2, tf.keras and, for such a path, Keras 3 write them
-- (keras.src.legacy.saving.legacy_h5_format), and configs of Keras 2 in the form of Keras 3, which saving/config.lua reads.
--
--   the note model_config of the root         the model as JSON
--   the note training_config                  what compile was given; not there if the model was not compiled
--   the group model_weights                   see legacy.lua
--   the group optimizer_weights               the optimizer's variables, in its order (Keras 3)

local errors = require "flow.errors"
local object = require "flow.object"
local json = require "flow.json"
local log = require "flow.log"
local models = require "flow.model"
local tensor = require "flow.tensor"
local tensor_file = require "flow.saving.tensor_file"
local weights = require "flow.saving.weights"
local legacy = require "flow.saving.legacy"

local raise, shape_text = errors.raise, tensor.shape_text
local legacy_models = {}

---- configs of Keras 2 ---------------------------------------------------------------------------------------------------------------

-- Members of configs that Keras 3 does not have: of all layers, and of some.
local GONE = { "batch_input_shape", "input_length", "implementation", "time_major" }
local GONE_OF = {
  DepthwiseConv2D = { "groups" }, DepthwiseConv1D = { "groups" }, Conv2DTranspose = { "groups" }, Conv3DTranspose = { "groups" },
  Conv1DTranspose = { "groups" }, Attention = { "causal" }, AdditiveAttention = { "causal" },
  SeparableConv1D = { "groups", "kernel_initializer", "kernel_regularizer", "kernel_constraint" },
  SeparableConv2D = { "groups", "kernel_initializer", "kernel_regularizer", "kernel_constraint" },
  MultiHeadAttention = { "query_shape", "key_shape", "value_shape" },
}
-- Members with another name now.
local RENAMED = { LeakyReLU = { alpha = "negative_slope" } }
-- Layers that Keras 2 calls on a list of the sequence and its initial states.
local RECURRENT = { LSTM = true, GRU = true, SimpleRNN = true, RNN = true, Bidirectional = true, ConvLSTM1D = true, ConvLSTM2D = true,
                    ConvLSTM3D = true }

local function is_table(value) return type(value) == "table" and value ~= json.null end
local function is_list(value) return is_table(value) and (json.is_list(value) or value[1] ~= nil) end

-- The number of a layer's first call: 1 for a model that has an Input, which counts as called when it is made, else 0.
local function first_call(entry)
  local list = is_list(entry.config) and entry.config or entry.config.layers
  local first = is_list(list) and list[1]
  local has_input = is_table(first) and is_table(first.config) and (first.class_name == "InputLayer" or first.config.batch_input_shape)
  return has_input and 1 or 0
end

-- A value with reference(history) in place of each { layer, call, output }. firsts: the number of the first call by the layer's name.
local function referring(value, firsts, reference)
  if is_list(value) and #value == 3 and firsts[value[1]] and type(value[2]) == "number" and type(value[3]) == "number" then
    return reference(value)
  end
  if not is_table(value) then return value end
  local result = json.is_list(value) and json.list() or {}
  for key, inner in pairs(value) do result[key] = referring(inner, firsts, reference) end
  return result
end

-- A call: { { layer, call, output, kwargs }, ... }, an entry for each tensor of its first argument.
local function call_of(call, firsts, class_name, path)
  local function reference(history)
    local number = type(history[2]) == "number" and history[2] - firsts[history[1]]
    return { class_name = "__keras_tensor__", config = { keras_history = { history[1], number, history[3] } } }
  end
  local tensors, kwargs = json.list(), {}
  for i, item in ipairs(call) do
    if not is_list(item) or not firsts[item[1]] then
      raise("%s: a call of a %s refers to %s, which is not in the model", path, tostring(class_name),
        is_list(item) and tostring(item[1]) or "nothing")
    end
    tensors[i] = reference(item)
    for name, value in pairs(is_table(item[4]) and item[4] or {}) do kwargs[name] = referring(value, firsts, reference) end
  end
  local first = #tensors == 1 and tensors[1] or tensors
  if #tensors > 1 and RECURRENT[class_name] then
    first, kwargs.initial_state = tensors[1], json.list { unpack(tensors, 2) }
  end
  return { args = json.list { first }, kwargs = kwargs }
end

-- The config of a layer without what Keras 3 does not have. Attention of Keras 3 is causal by a call's argument, which no file of Keras 2
-- has: such a layer would see what it must not.
local function layer_config(class_name, given, path)
  local config = {}
  if given.causal == true then
    raise("%s: the layer %q is causal, which files of Keras 2 say and those of Keras 3 do not: build the model in Lua, with "
      .. "use_causal_mask = true in the call, and read its weights by load_weights", path, tostring(given.name))
  end
  for name, value in pairs(given) do config[(RENAMED[class_name] or {})[name] or name] = value end
  for _, name in ipairs(GONE) do config[name] = nil end
  for _, name in ipairs(GONE_OF[class_name] or {}) do config[name] = nil end
  if is_list(config.axis) and #config.axis == 1 then config.axis = config.axis[1] end
  return config
end

local layer_entry

-- The Input that the first layer of a Sequential stands for.
local function input_entry(first)
  local config = first.config
  return { class_name = "InputLayer", config = {
    name = tostring(config.name) .. "_input", batch_shape = config.batch_input_shape, dtype = config.dtype } }
end

local function model_config(entry, path, depth)
  local given, config = entry.config, {}
  if is_list(given) then given = { layers = given, name = "sequential" } end      -- before Keras 2.2.3
  for name, value in pairs(given) do config[name] = value end
  local firsts, list, is_graph = {}, json.list(), given.output_layers ~= nil
  for i, inner in ipairs(given.layers) do
    if not is_table(inner) or not is_table(inner.config) then raise("%s: an entry of the model is not a table", path) end
    firsts[inner.name or inner.config.name or ""] = first_call(inner)
    if i == 1 and not is_graph and inner.class_name ~= "InputLayer" and is_table(inner.config.batch_input_shape) then
      list[1] = input_entry(inner)
    end
    list[#list + 1] = layer_entry(inner, path, depth)
  end
  config.layers = list
  if not is_graph then return config end
  for i, inner in ipairs(given.layers) do
    local calls = json.list()
    for k, call in ipairs(is_list(inner.inbound_nodes) and inner.inbound_nodes or {}) do
      calls[k] = is_list(call) and call_of(call, firsts, inner.class_name, path) or call
    end
    list[i].inbound_nodes = calls
  end
  -- Keras 3 still counts from 1 here, and here only, but not the calls of a Sequential.
  local classes = {}
  for _, inner in ipairs(given.layers) do classes[inner.name or inner.config.name or ""] = inner.class_name end
  config.output_layers = referring(given.output_layers, firsts, function(history)
    local shift = classes[history[1]] == "Sequential" and firsts[history[1]] or 0
    return json.list { history[1], history[2] - shift, history[3] }
  end)
  return config
end

-- The entry of a layer or model in the form of Keras 3.
function layer_entry(entry, path, depth)
  local result, name = {}, entry.class_name
  if depth > 64 then raise("%s: models are nested more than 64 deep", path) end
  for key, value in pairs(entry) do result[key] = value end
  if name == "Model" then result.class_name = "Functional" end
  local is_model = is_list(entry.config) or is_table(entry.config.layers)
  if is_model then
    result.config = model_config(entry, path, depth + 1)
  elseif name ~= "InputLayer" then
    result.config = layer_config(name, entry.config, path)
    for _, key in ipairs { "layer", "backward_layer", "forward_layer", "cell" } do      -- wrappers
      local inner = result.config[key]
      if is_table(inner) and is_table(inner.config) then result.config[key] = layer_entry(inner, path, depth + 1) end
    end
  end
  return result
end

-- Whether a description is one of Keras 2: it says so, or, of 2.0 and before, says nothing.
local function is_old(version) return version == nil or tostring(version):find "^[12]%." ~= nil end

-- The entry of a model of Keras 2 as one of Keras 3; others stay as they are. version: keras_version of the file.
function legacy_models.translated(entry, version, path)
  if not is_table(entry) or not is_table(entry.config) then raise("%s: its model_config has no config", path) end
  return is_old(version) and layer_entry(entry, path, 0) or entry
end

---- what compile was given ----------------------------------------------------------------------------------------------------------------

-- A metric of Keras 2, which wraps functions: by the function's name. Lists and tables of them, too.
local function metric(value)
  if not is_table(value) then return value end
  if value.class_name == "MeanMetricWrapper" then return is_table(value.config) and (value.config.fn or value.config.name) end
  if value.class_name then return value end
  local result = json.is_list(value) and json.list() or {}
  for key, inner in pairs(value) do result[key] = metric(inner) end
  return result
end

-- The list of one list is that of the only output.
local function metrics_of(value, outputs)
  value = metric(value)
  return outputs == 1 and is_list(value) and #value == 1 and is_list(value[1]) and value[1] or value
end

-- A loss of Keras 2: its reduction "auto" is the default. Lists and tables of them, too.
local function loss(value)
  if not is_table(value) then return value end
  local result = json.is_list(value) and json.list() or {}
  for key, inner in pairs(value) do
    if key ~= "reduction" or inner ~= "auto" then result[key] = loss(inner) end
  end
  return result
end

-- training_config as compile_config of Keras 3.
local function compile_config(training, outputs)
  local optimizer = training.optimizer_config
  if is_table(optimizer) and is_table(optimizer.config) then
    local config = {}
    for name, value in pairs(optimizer.config) do config[name] = value end
    if config.lr ~= nil then config.learning_rate, config.lr = config.lr, nil end
    if config.decay == 0 then config.decay = nil end
    config.is_legacy_optimizer, config.jit_compile = nil, nil
    optimizer = { class_name = (tostring(optimizer.class_name):gsub("^Custom>", "")), config = config }
  end
  return { optimizer = optimizer, loss = loss(training.loss), loss_weights = training.loss_weights,
           metrics = metrics_of(training.metrics, outputs), weighted_metrics = metrics_of(training.weighted_metrics, outputs),
           steps_per_execution = training.steps_per_execution }
end

-- The names of an optimizer's variables in the order of Keras 3. The optimizers that tf.keras calls legacy name the slot last, "Adam/dense/
-- kernel/m:0", and have all m before all v; nil where they have other slots, whose order is not known.
local function in_order(names)
  local slots, of_slot = {}, {}
  for i = 2, #names do
    local slot = names[i]:match "/(%l+):0$"
    if not slot or not (slot == "m" or slot == "v" or slot == "momentum" or slot == "rms" or slot == "accumulator") then return names end
    if not of_slot[slot] then
      of_slot[slot] = {}
      slots[#slots + 1] = slot
    end
    table.insert(of_slot[slot], names[i])
  end
  if #slots <= 1 then return names end
  if #slots > 2 or not of_slot.m or not of_slot.v or #of_slot.m ~= #of_slot.v then return nil end
  local result = { names[1] }
  for i, name in ipairs(of_slot.m) do result[2 * i], result[2 * i + 1] = name, of_slot.v[i] end
  return result
end

-- The optimizer's variables, if the file has as many of the same shapes; else it begins anew, as in Keras, and one line says so. The rate
-- is a variable in files of Keras 3 only.
local function read_optimizer(file, model, path)
  local names = legacy.lines_of(file, "optimizer_weights", "weight_names")
  if not model.optimizer then return end
  model.optimizer:build(model.trainable_variables)
  local variables, list = {}, {}
  for i, variable in ipairs(model.optimizer.variables) do variables[i] = variable end
  if #names <= 2 and #names < #variables then return end      -- none, or the iteration and the rate alone: it had not begun
  if #names == #variables - 1 then table.remove(variables, 2) end
  names = in_order(names)
  for i = 1, #variables do
    local position, variable = names and names[i] and file:find("optimizer_weights/" .. names[i]), variables[i]
    if not position or #names ~= #variables or shape_text(file:shape(position)) ~= shape_text(variable.shape) then
      return log.warning("%s: the state of its optimizer is of another kind; the optimizer starts from scratch", path)
    end
    list[i] = { position = position, variable = variable }
  end
  weights.assign(file, list)
end

-- The model of a .h5 file. blank(make, ...): makes it with variables that are not filled. options: those of load_model.
function legacy_models.load(path, options, blank)
  options = options or {}
  local file = tensor_file.open(path, nil, { trusted = options.trusted })
  local text, training = file:note("", "model_config"), file:note("", "training_config")
  if not text then
    raise("load_model: %q has the weights of a model, but no model_config: make the model and call model:load_weights(path)", path)
  end
  local entry = legacy_models.translated(json.decode(text, path .. ": model_config"), file:note("", "keras_version"), path)
  local description = require "flow.saving.description"
  local model = blank(description.model, entry, path, { custom_objects = options.custom_objects, compile = false })
  if not model.built then model:build() end
  legacy.load_weights(model, path, { trusted = options.trusted })
  if options.compile ~= false and training then
    local given = json.decode(training, path .. ": training_config")
    if not is_table(given) then raise("%s: its training_config is not a table", path) end
    local outputs = object.is(model, models.Sequential) and 1 or #model.outputs
    description.compile(model, compile_config(given, outputs), path, options)
    read_optimizer(file, model, path)
  end
  file:close()
  return model
end

return legacy_models
